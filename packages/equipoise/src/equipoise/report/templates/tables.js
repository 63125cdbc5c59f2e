// The tables of the figures: out of the columns in which the page holds them, as rows and as text.
const data = JSON.parse(document.getElementById("figures").textContent);
const charts = new Map(data.charts.map((chart) => [chart.anchor, chart]));

function rowsOf(table) {
  const read = Object.entries(table.columns).map(([name, column]) =>
    Array.isArray(column)
      ? [name, (row) => column[row]]
      : [name, (row) => column.levels[column.codes[row]]],
  );
  return Array.from({ length: table.rows }, (_, row) =>
    Object.fromEntries(read.map(([name, at]) => [name, at(row)])),
  );
}

// Under each table's name the marks that are drawn from it, as "point, rule".
function marksOf(specification) {
  const found = new Map(specification.datasets.map((name) => [name, new Set()]));
  for (const layer of specification.layer) {
    const name = (layer.data ?? specification.data).name;
    found.get(name)?.add(layer.mark.type);
  }
  return found;
}

// Every row that a figure draws; `drawn_as` says by which marks.
function rowsOfFigure(chart) {
  const marks = marksOf(chart.specification);
  return chart.specification.datasets.flatMap((name) => {
    const drawnAs = [...marks.get(name)].join(" and ");
    return rowsOf(data.tables[name]).map((row) => ({ drawn_as: drawnAs, ...row }));
  });
}

function columnsOf(rows) {
  return [...new Set(rows.flatMap((row) => Object.keys(row)))];
}

function wordOf(value) {
  return value === null || value === undefined ? "" : String(value);
}

// RFC 4180: a text with a comma, a quote or a line's end stands in quotes.
function csvOf(rows) {
  const cell = (value) => {
    const text = wordOf(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = columnsOf(rows);
  const lines = rows.map((row) => columns.map((name) => cell(row[name])).join(","));
  return [columns.map(cell).join(","), ...lines, ""].join("\r\n");
}
