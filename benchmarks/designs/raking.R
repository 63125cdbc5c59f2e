# Times survey's calibrate with raking on data that were read beforehand.
# Rscript raking.R FOLDER ROWS COLUMNS
# FOLDER/data.bin: doubles, column after column: treatment, covariates.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
rows <- as.integer(arguments[2])
columns <- as.integer(arguments[3])
suppressMessages(library(survey))
values <- readBin(file.path(folder, "data.bin"), "double", rows * (columns + 1))
treatment <- values[1:rows]
covariates <- matrix(values[(rows + 1):(rows * (columns + 1))], rows, columns)
colnames(covariates) <- paste0("x", 1:columns)
controls <- data.frame(covariates[treatment == 0, ])
formula <- reformulate(colnames(covariates))
before <- proc.time()
means <- c("(Intercept)" = 1, colMeans(covariates[treatment == 1, ]))
design <- svydesign(ids = ~1, weights = rep(1, nrow(controls)), data = controls)
raked <- calibrate(
  design, formula,
  population = means * nrow(controls), calfun = "raking", epsilon = 1e-8, maxit = 100
)
found <- weights(raked)
used <- proc.time() - before
writeBin(as.double(found), file.path(folder, "weights.bin"))
cat(sprintf("%.6f %.6f\n", used[["elapsed"]], used[["user.self"]] + used[["sys.self"]]))
