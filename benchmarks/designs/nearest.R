# Times MatchIt's nearest matching on a score that was read beforehand.
# Rscript nearest.R FILE ROWS ORDER; FILE has doubles: the treatment, then the scores.
# Prints the seconds, the number of pairs and the mean difference of the scores.
arguments <- commandArgs(trailingOnly = TRUE)
rows <- as.integer(arguments[2])
values <- readBin(arguments[1], "double", 2 * rows)
score <- values[(rows + 1):(2 * rows)]
frame <- data.frame(treat = values[1:rows], score = score)
suppressMessages(library(MatchIt))
before <- Sys.time()
found <- suppressWarnings(matchit(
  treat ~ score,
  data = frame, method = "nearest", distance = score, m.order = arguments[3]
))
seconds <- as.numeric(difftime(Sys.time(), before, units = "secs"))
donors <- found$match.matrix[, 1]
is_matched <- !is.na(donors)
takers <- as.integer(names(donors))[is_matched]
differences <- abs(score[takers] - score[as.integer(donors[is_matched])])
cat(seconds, sum(is_matched), sprintf("%.12g", mean(differences)), "\n")
