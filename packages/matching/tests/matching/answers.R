# Answers of R's package Matching, taken as a black box, to questions in JSON.
# usage: Rscript answers.R QUESTIONS.json ANSWERS.json
suppressMessages({library(Matching); library(jsonlite)})
files <- commandArgs(TRUE)
questions <- fromJSON(files[1], simplifyDataFrame = FALSE)
plain <- function(value) if (is.null(value)) NULL else as.numeric(value)

matched <- function(asked) {
  found <- do.call(Match, asked)
  if (!is.list(found)) return(list(none = TRUE))
  list(
    est = plain(found$est), est_noadj = plain(found$est.noadj), se = plain(found$se),
    se_standard = plain(found$se.standard), se_cond = plain(found$se.cond),
    treated = found$index.treated - 1, control = found$index.control - 1,
    weights = plain(found$weights), dropped = as.list(found$index.dropped - 1),
    ndrops = plain(found$ndrops), wnobs = plain(found$wnobs), nobs = plain(found$orig.nobs),
    ecaliper = plain(found$ecaliper)
  )
}

described <- function(one) {
  told <- list(
    mean_treated = plain(one$mean.Tr), mean_control = plain(one$mean.Co),
    variance_treated = plain(one$var.Tr), variance_control = plain(one$var.Co),
    variance_ratio = plain(one$var.ratio), sdiff = plain(one$sdiff),
    sdiff_pooled = plain(one$sdiff.pooled), t_p_value = plain(one$p.value),
    qq = as.numeric(one$qqsummary[c("meandiff", "mediandiff", "maxdiff")]),
    qq_raw = as.numeric(one$qqsummary.raw[c("meandiff", "mediandiff", "maxdiff")])
  )
  if (is.list(one$ks)) {
    told$ks <- plain(one$ks$ks$statistic)
    told$ks_p <- plain(one$ks$ks$p.value)
  }
  told
}

balanced <- function(asked) {
  pairs <- do.call(Match, asked$match)
  frame <- data.frame(if (is.null(asked$covariates)) asked$match$X else asked$covariates)
  names(frame) <- paste0("x", seq_along(frame) - 1)
  more <- list(
    formul = reformulate(names(frame), "treat"), data = cbind(frame, treat = asked$match$Tr),
    match.out = pairs, nboots = 0, ks = TRUE, paired = asked$paired, print.level = 0
  )
  if (!is.null(asked$weights)) more$weights <- asked$weights
  found <- do.call(MatchBalance, more)
  list(
    before = lapply(found$BeforeMatching, described),
    after = lapply(found$AfterMatching, described),
    smallest_before = plain(found$BMsmallest.p.value),
    smallest_after = plain(found$AMsmallest.p.value)
  )
}

univariate <- function(asked) {
  told <- described(do.call(balanceUV, asked))
  told$qq_alone <- as.numeric(unlist(qqstats(asked$Tr, asked$Co, standardize = TRUE)))
  told$qq_raw_alone <- as.numeric(unlist(qqstats(asked$Tr, asked$Co, standardize = FALSE)))
  test <- ks.boot(asked$Tr, asked$Co, nboots = 10)
  told$ks_alone <- c(plain(test$ks$statistic), plain(test$ks$p.value))
  told
}

answer <- function(question) {
  how <- list(match = matched, balance = balanced, univariate = univariate)[[question$kind]]
  tryCatch(
    suppressWarnings(how(question$asked)),
    error = function(error) list(error = conditionMessage(error))
  )
}

set.seed(1)
invisible(capture.output(answers <- lapply(questions, answer)))
write_json(answers, files[2], digits = NA, auto_unbox = TRUE, na = "string", null = "null")
