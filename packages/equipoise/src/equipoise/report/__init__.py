"""Reports: a result of any kind becomes one document, which every renderer can write.

document: the one model of a report, as parts in reading order.
builders: a file for each kind of result, which turns it into a document.
renderers: a file for each form: terminal, page, Markdown, LaTeX, CSV, notebook.
json_document: results as JSON, their schemas, and reading them back.
units: numbers as people read them.
"""
