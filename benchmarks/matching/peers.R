# Times R's Match and MatchIt's nearest on data that were read beforehand.
# Rscript peers.R FILE ROWS COLUMNS ESTIMAND REPETITIONS PEER...
# FILE: doubles, column after column: treatment, outcome, covariates.
arguments <- commandArgs(trailingOnly = TRUE)
rows <- as.integer(arguments[2])
columns <- as.integer(arguments[3])
estimand <- arguments[4]
repetitions <- as.integer(arguments[5])
values <- readBin(arguments[1], "double", rows * (columns + 2))
treatment <- values[1:rows]
outcome <- values[(rows + 1):(2 * rows)]
covariates <- matrix(values[(2 * rows + 1):(rows * (columns + 2))], rows, columns)
colnames(covariates) <- paste0("x", 1:columns)

peers <- list(
  Match = function() {
    found <- Matching::Match(
      Y = outcome, Tr = treatment, X = covariates, estimand = estimand, version = "fast"
    )
    c(found$est, length(found$weights))
  },
  matchit = function() {
    found <- MatchIt::matchit(
      formula, frame,
      method = "nearest", distance = "scaled_euclidean", replace = TRUE, estimand = estimand
    )
    chosen <- found$match.matrix[, 1]
    effect <- mean(outcome[as.integer(rownames(found$match.matrix))] - outcome[as.integer(chosen)])
    c(effect, length(chosen))
  }
)
frame <- data.frame(treatment, covariates)
formula <- reformulate(colnames(covariates), "treatment")
for (name in arguments[-(1:5)]) {
  suppressMessages(requireNamespace(if (name == "Match") "Matching" else "MatchIt"))
  for (repetition in seq_len(repetitions)) {
    before <- Sys.time()
    answer <- peers[[name]]()
    seconds <- as.numeric(difftime(Sys.time(), before, units = "secs"))
    cat(name, sprintf("%.9f %.12g %d", seconds, answer[1], answer[2]), "\n")
  }
}
