// Buttons that download the data and the picture of a figure, and a table that shows the data.
// Everything is in the page; nothing is loaded from the network.
const MAX_TABLE_ROWS = 200;

function startDownload(address, fileName) {
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName;
  link.click();
}

function downloadBlob(blob, fileName) {
  const address = URL.createObjectURL(blob);
  startDownload(address, fileName);
  // The browser starts the download later, and needs the address until then.
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

async function pictureBlob(anchor, extension) {
  await drawings;
  const view = views.get(anchor);
  if (extension === "svg") {
    return new Blob([await view.toSVG()], { type: "image/svg+xml" });
  }
  const canvas = await view.toCanvas(2);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function figureBlob(anchor, extension) {
  const chart = charts.get(anchor);
  if (extension === "csv") {
    return new Blob([csvOf(rowsOfFigure(chart))], { type: "text/csv;charset=utf-8" });
  }
  if (extension === "json") {
    const rows = JSON.stringify(rowsOfFigure(chart), null, 1);
    return new Blob([rows, "\n"], { type: "application/json" });
  }
  return pictureBlob(anchor, extension);
}

function tableOf(rows, title) {
  const table = document.createElement("table");
  const columns = columnsOf(rows);
  const shown = rows.slice(0, MAX_TABLE_ROWS);
  const isCut = shown.length < rows.length;
  table.createCaption().textContent =
    title + (isCut ? `: the first ${shown.length} of ${rows.length} rows; CSV and JSON have all` : "");
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name.replaceAll("_", " ");
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of shown) {
    const line = body.insertRow();
    for (const name of columns) {
      line.insertCell().textContent = textOf(row[name]);
    }
  }
  return table;
}

function addDataTable(details) {
  const anchor = details.dataset.chart;
  const container = document.createElement("div");
  container.className = "scroll";
  container.tabIndex = 0;
  container.setAttribute("role", "group");
  container.setAttribute("aria-label", details.querySelector("summary").textContent);
  const title = document.getElementById(`${anchor}-title`).textContent;
  container.append(tableOf(rowsOfFigure(charts.get(anchor)), title));
  details.append(container);
}

for (const buttons of document.querySelectorAll(".download")) {
  buttons.hidden = false;
  buttons.addEventListener("click", async (event) => {
    const { chart, picture } = buttons.dataset;
    const extension = event.target.dataset.as;
    const fileName = `equipoise-${chart ?? picture}.${extension}`;
    if (extension && picture) {
      startDownload(document.getElementById(picture).src, fileName);
    } else if (extension) {
      downloadBlob(await figureBlob(chart, extension), fileName);
    }
  });
}
for (const details of document.querySelectorAll(".numbers")) {
  details.hidden = false;
  details.addEventListener("toggle", () => addDataTable(details), { once: true });
}
