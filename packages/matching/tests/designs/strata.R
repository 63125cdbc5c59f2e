# Answers of R's MatchIt, taken as a black box, to questions in JSON.
# usage: Rscript strata.R QUESTIONS.json ANSWERS.json
files <- commandArgs(trailingOnly = TRUE)
questions <- jsonlite::fromJSON(files[1], simplifyDataFrame = FALSE, simplifyMatrix = FALSE)
answers <- lapply(questions, function(question) {
  frame <- as.data.frame(question$columns, stringsAsFactors = TRUE)
  formula <- reformulate(setdiff(names(frame), "treat"), "treat")
  match <- do.call(MatchIt::matchit, c(list(formula, data = frame), question$options))
  strata <- as.integer(match$subclass)
  strata[is.na(strata)] <- -1L
  list(weights = as.numeric(match$weights), strata = strata)
})
jsonlite::write_json(answers, files[2], digits = NA)
