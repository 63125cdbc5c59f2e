// The data tables of the figures. The page has them as columns; these functions return rows and CSV.
const data = JSON.parse(document.getElementById("figures").textContent);
const charts = new Map(data.charts.map((chart) => [chart.anchor, chart]));

function rowsOf(table) {
  const cellReaders = Object.entries(table.columns).map(([name, column]) =>
    Array.isArray(column)
      ? [name, (row) => column[row]]
      : [name, (row) => column.levels[column.codes[row]]],
  );
  return Array.from({ length: table.rows }, (_, row) =>
    Object.fromEntries(cellReaders.map(([name, cellOf]) => [name, cellOf(row)])),
  );
}

// Return, by the name of a table, the types of the marks that are drawn from it, such as "point".
function marksOf(specification) {
  const marks = new Map(specification.datasets.map((name) => [name, new Set()]));
  for (const layer of specification.layer) {
    const name = (layer.data ?? specification.data).name;
    marks.get(name)?.add(layer.mark.type);
  }
  return marks;
}

// Return every row that a figure draws; the column `drawn_as` has the types of its marks.
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

function textOf(value) {
  return value === null || value === undefined ? "" : String(value);
}

// RFC 4180: a text with a comma, a quote or a line end is put in quotes.
function csvOf(rows) {
  const cell = (value) => {
    const text = textOf(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = columnsOf(rows);
  const lines = rows.map((row) => columns.map((name) => cell(row[name])).join(","));
  return [columns.map(cell).join(","), ...lines, ""].join("\r\n");
}
