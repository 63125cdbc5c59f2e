# Times MatchIt's method = "cem" on data that were read beforehand.
# Rscript strata.R FILE ROWS COLUMNS BINS
# FILE: doubles, column after column: treatment, covariates. Prints seconds, CPU seconds and matched rows.
arguments <- commandArgs(trailingOnly = TRUE)
rows <- as.integer(arguments[2])
columns <- as.integer(arguments[3])
bins <- as.integer(arguments[4])
values <- readBin(arguments[1], "double", rows * (columns + 1))
frame <- data.frame(matrix(values, rows, columns + 1))
names(frame) <- c("treat", paste0("x", seq_len(columns) - 1))
suppressMessages(requireNamespace("MatchIt"))
formula <- reformulate(names(frame)[-1], "treat")
cutpoints <- setNames(rep(list(bins), columns), names(frame)[-1])
before <- proc.time()
match <- MatchIt::matchit(formula, frame, method = "cem", cutpoints = cutpoints)
spent <- proc.time() - before
seconds <- spent[["elapsed"]]
cat(sprintf("%.6f %.6f %d\n", seconds, sum(spent[1:2]), sum(match$weights > 0)))
