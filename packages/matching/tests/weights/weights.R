# Weights of R's packages for the tests: raking by survey's calibrate, and scores by glm.
# Rscript weights.R DATA.csv ANSWERS.csv
# DATA.csv: treat (0 and 1), and the covariates.
arguments <- commandArgs(trailingOnly = TRUE)
frame <- read.csv(arguments[1])
names_of_covariates <- setdiff(names(frame), "treat")
suppressMessages(library(survey))
controls <- frame[frame$treat == 0, ]
formula <- reformulate(names_of_covariates)
treated <- model.matrix(formula, frame[frame$treat == 1, ])
design <- svydesign(ids = ~1, weights = rep(1, nrow(controls)), data = controls)
raked <- calibrate(
  design, formula,
  population = colMeans(treated) * nrow(controls), calfun = "raking", epsilon = 1e-12, maxit = 200
)
answers <- data.frame(raking = rep(1, nrow(frame)))
answers$raking[frame$treat == 0] <- weights(raked)
score_formula <- reformulate(names_of_covariates, "treat")
for (link in c("logit", "probit", "cloglog")) {
  fitted <- glm(score_formula, binomial(link), frame, epsilon = 1e-14, maxit = 100)
  answers[[link]] <- fitted(fitted)
}
write.csv(format(answers, digits = 17), arguments[2], row.names = FALSE, quote = FALSE)
