% One task, three times; the mean is written to EQUIPOISE_METRICS.
% Arguments: the task, an option for the size as in the built-in workload, and the size.
arguments = argv();
task = arguments{1};
n = str2double(arguments{end});
rand("seed", 1);
switch task
  case "sort"
    x = rand(n, 1); run = @() sort(x);
  case "dgemm"
    x = rand(n); y = rand(n); run = @() x * y;
  case "invert"
    x = rand(n) + n * eye(n); run = @() inv(x);
  otherwise
    error("there is no task %s; use sort, dgemm or invert", task);
end
seconds = zeros(1, 3);
for run_number = 1:3
  started = tic; answer = run(); seconds(run_number) = toc(started);
  assert(! isempty(answer));
end
metrics_file = getenv("EQUIPOISE_METRICS");
if isempty(metrics_file) out = stdout; else out = fopen(metrics_file, "a"); end
fprintf(out, '{"metric": "work_s", "value": %.9f, "unit": "s"}\n', mean(seconds));
for run_number = 1:3
  fprintf(out, '{"metric": "work_s", "value": %.9f, "iteration": %d, "unit": "s"}\n',
          seconds(run_number), run_number);
end
