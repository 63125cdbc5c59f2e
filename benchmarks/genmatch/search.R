# R's GenMatch, once for each seed: seconds, candidates evaluated, the fitness it found.
# R is run here, not read: it is GPL.
# usage: Rscript search.R TASK.json; prints one JSON document a line.
suppressMessages({library(rgenoud); library(Matching); library(jsonlite)})
task <- fromJSON(commandArgs(TRUE)[1])
data <- read.csv(task$data)
data <- data[rep(seq_len(nrow(data)), task$copies), ]
x <- as.matrix(data[, task$x])
balance <- if (task$interaction) cbind(x, data$re74 * data$re75) else x
evaluated <- 0L
# Counts what the optimiser evaluates: a call more, microseconds beside milliseconds.
suppressMessages(trace("genoud", where = asNamespace("rgenoud"), print = FALSE, tracer = quote({
  counted <- fn
  fn <- function(...) { evaluated <<- evaluated + 1L; counted(...) }
})))
for (seed in task$seeds) {
  evaluated <- 0L
  set.seed(seed)
  gc()
  spent <- system.time(found <- suppressWarnings(GenMatch(
    Tr = data$treat, X = x, BalanceMatrix = balance, estimand = task$estimand, M = 1,
    pop.size = task$population, max.generations = task$generations,
    wait.generations = task$wait, hard.generation.limit = task$hard, print.level = 0)))
  cat(toJSON(list(seed = seed, wall_s = spent[["elapsed"]],
                  cpu_s = spent[["user.self"]] + spent[["sys.self"]], evaluated = evaluated,
                  fitness = found$value, weights = found$par), digits = 17, auto_unbox = TRUE), "\n")
}
