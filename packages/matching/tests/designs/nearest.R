# Answers of R's MatchIt to questions about nearest matching on a score.
# Rscript nearest.R QUESTIONS ANSWERS, both JSON.
suppressMessages({
  library(MatchIt)
  library(jsonlite)
})
arguments <- commandArgs(trailingOnly = TRUE)
answer <- function(question) {
  frame <- data.frame(treat = question$treat, cell = question$cell)
  options <- list(
    treat ~ cell,
    data = frame, method = "nearest", distance = question$score,
    estimand = question$estimand, ratio = question$m, replace = question$replace
  )
  if (!question$replace) options$m.order <- question$order
  if (!is.null(question$caliper)) {
    options$caliper <- question$caliper
    options$std.caliper <- FALSE
  }
  if (question$exact) options$exact <- ~cell
  found <- suppressWarnings(do.call(matchit, options))$match.matrix
  is_matched <- !is.na(found)
  takers <- matrix(rownames(found), nrow(found), ncol(found))
  list(
    takers = I(as.integer(takers[is_matched])),
    donors = I(as.integer(found[is_matched])),
    passes = I(col(found)[is_matched])
  )
}
questions <- fromJSON(arguments[1], simplifyDataFrame = FALSE)
write_json(lapply(questions, answer), arguments[2])
