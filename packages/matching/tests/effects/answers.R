# Answers of R for the tests of effects: Rscript answers.R QUESTIONS.json ANSWERS.json
suppressPackageStartupMessages({library(jsonlite); library(sandwich); library(survival)})

# JSON has the covariates as a list of columns.
matrix_of <- function(columns) t(columns)

# G-computation with a cluster-robust (HC1) or row-robust (HC3) error, and the delta method.
model <- function(q) {
  X <- matrix_of(q$X)
  y <- q$y; treat <- q$treat; w <- q$weights; target <- q$target / sum(q$target)
  centred <- sweep(X, 2, colSums(X * target))
  fit <- if (q$family == "gaussian") lm(y ~ treat * centred, weights = w)
    else {
      fitted <- function(start) suppressWarnings(
        glm(y ~ treat * centred, weights = w, family = q$family, start = start,
            control = glm.control(epsilon = 1e-14, maxit = 100)))
      # R keeps the leverages of the step before the last: start again at the optimum.
      fitted(coef(fitted(NULL)))
    }
  V <- if (is.null(q$clusters)) vcovHC(fit, type = "HC3")
    else vcovCL(fit, cluster = q$clusters, type = "HC1")
  columns <- function(arm) cbind(1, arm, centred, arm * centred)
  beta <- coef(fit)
  family <- if (q$family == "gaussian") gaussian() else get(q$family)()
  side <- function(arm) {
    D <- columns(rep(arm, length(y))); eta <- as.vector(D %*% beta)
    list(mean = sum(target * family$linkinv(eta)),
         gradient = colSums(target * family$mu.eta(eta) * D))
  }
  one <- side(1); two <- side(0)
  error <- function(gradient) sqrt(as.vector(t(gradient) %*% V %*% gradient))
  log_ratio <- one$gradient / one$mean - two$gradient / two$mean
  odds <- function(s) s$gradient / (s$mean * (1 - s$mean))
  list(means = c(two$mean, one$mean), difference_se = error(one$gradient - two$gradient),
       log_ratio_se = error(log_ratio), log_odds_se = error(odds(one) - odds(two)))
}

cox <- function(q) {
  clusters <- if (is.null(q$clusters)) seq_along(q$time) else q$clusters
  fit <- coxph(Surv(time, event) ~ treat, data = as.data.frame(q[c("time", "event", "treat")]),
               weights = q$weights, cluster = clusters, robust = TRUE,
               control = coxph.control(eps = 1e-14, toler.chol = 1e-16, iter.max = 50))
  list(log_ratio = unname(coef(fit)), se = sqrt(fit$var[1, 1]))
}

chance <- function(q) {
  fit <- survfit(Surv(q$time, q$event) ~ 1, weights = q$weights, robust = TRUE,
                 id = seq_along(q$time))
  at <- summary(fit, times = q$at)
  list(chance = at$surv, se = at$std.err)
}

pooled <- function(q) {
  p <- mice::pool.scalar(q$Q, q$U, n = q$n, k = q$k)
  list(estimate = p$qbar, variance = p$t, df = p$df)
}

# Nearest matching without replacement on a logistic score, and the recommended error.
matched <- function(q) {
  X <- matrix_of(q$X); colnames(X) <- paste0("x", seq_len(ncol(X)))
  data <- data.frame(y = q$y, treat = q$treat, X)
  m <- MatchIt::matchit(reformulate(colnames(X), "treat"), data = data, method = q$method)
  md <- MatchIt::match.data(m)
  fit <- lm(y ~ treat * (.), data = md[c("y", "treat", colnames(X))], weights = md$weights)
  V <- vcovCL(fit, cluster = md$subclass, type = "HC1")
  treated <- md[md$treat == 1, ]
  D <- function(arm) { d <- treated; d$treat <- arm; model.matrix(delete.response(terms(fit)), d) }
  gradient <- colMeans(D(1) - D(0))
  subclass <- as.integer(m$subclass); subclass[is.na(subclass)] <- 0
  list(estimate = sum(gradient * coef(fit)), se = sqrt(as.vector(t(gradient) %*% V %*% gradient)),
       weights = unname(m$weights), subclass = subclass - 1)
}

arguments <- commandArgs(trailingOnly = TRUE)
questions <- fromJSON(arguments[1], simplifyDataFrame = FALSE)
answers <- lapply(questions, function(q) get(q$kind)(q))
write(toJSON(answers, digits = NA, auto_unbox = TRUE), arguments[2])
