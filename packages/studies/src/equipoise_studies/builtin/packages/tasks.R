# One task, three times; the mean seconds are written to EQUIPOISE_METRICS.
# Arguments: the task, the option for its size (as in the built-in workload), and the size.
arguments <- commandArgs(trailingOnly = TRUE)
task <- arguments[1]
size <- as.numeric(arguments[length(arguments)])
set.seed(1)
operands <- switch(task,
  sort = list(runif(size)),
  dgemm = list(matrix(runif(size^2), size), matrix(runif(size^2), size)),
  invert = list(matrix(runif(size^2), size) + diag(size, size)),
  stop("there is no task ", task, "; use sort, dgemm or invert"))
run <- switch(task,
  sort = function(x) sort(x, method = "quick"),
  dgemm = function(x, y) x %*% y,
  invert = function(x) solve(x))
seconds <- function() as.numeric(Sys.time())
run_seconds <- sapply(1:3, function(run_number) {
  started <- seconds()
  answer <- do.call(run, operands)
  ended <- seconds()
  stopifnot(length(answer) > 0)
  ended - started
})
metrics_file <- Sys.getenv("EQUIPOISE_METRICS")
lines <- c(
  sprintf('{"metric": "work_s", "value": %.9f, "unit": "s"}', mean(run_seconds)),
  sprintf('{"metric": "work_s", "value": %.9f, "iteration": %d, "unit": "s"}',
    run_seconds, 1:3))
cat(lines, sep = "\n", file = metrics_file, append = nzchar(metrics_file))
cat("\n", file = metrics_file, append = nzchar(metrics_file))
