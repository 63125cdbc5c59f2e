# Prints the CPU seconds that one evaluation costs in GenMatch, on the data of a CSV file.
# Rscript evaluation.R FILE ESTIMAND POPULATION GENERATIONS
suppressMessages({library(Matching); library(rgenoud)})
given <- commandArgs(trailingOnly = TRUE)
frame <- read.csv(given[1])
X <- as.matrix(frame[, setdiff(names(frame), "treat")])
balance <- cbind(X, X[, "re74"] * X[, "re75"])
# The same loss as loss = 1, but it looks at the clock: from the first evaluation to the last, so
# that neither setting up nor the last matching is counted.
count <- 0
cpu <- function() sum(proc.time()[c("user.self", "sys.self")])
loss <- function(values) {
  count <<- count + 1
  if (count == 1) first <<- cpu()
  last <<- cpu()
  sort(values)
}
invisible(suppressWarnings(GenMatch(
  Tr = frame$treat, X = X, BalanceMatrix = balance, estimand = given[2], M = 1, loss = loss,
  pop.size = as.integer(given[3]), max.generations = as.integer(given[4]), wait.generations = 100,
  hard.generation.limit = TRUE, print.level = 0, unif.seed = 3392, int.seed = 8282
)))
cat(format((last - first) / (count - 1), digits = 17), count, R.version$major, R.version$minor,
    as.character(packageVersion("Matching")), "\n")
