"""Reports: a result of any kind becomes one document, which every renderer can write.

document: the model of a report, a list of parts in reading order.
kind: methods that a kind of campaign overrides to change its report.
builders: a file for each kind of result, which turns the result into a document.
renderers: a file for each output format: terminal, page, Markdown, LaTeX, CSV, notebook.
json_document: writes results as JSON, makes their schemas, and reads JSON results.
units: numbers as people read them.
"""
