# A small image with Equipoise. `make wheel` writes the wheel first, then:
#   docker build -t equipoise .
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" equipoise gate
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS install
WORKDIR /wheels
COPY dist/equipoise-*.whl ./
RUN python -m venv /opt/equipoise \
    && /opt/equipoise/bin/python -m pip install --no-cache-dir --only-binary :all: ./equipoise-*.whl

FROM python:${PYTHON}-slim
# The gate checks revisions out.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 equipoise
COPY --from=install /opt/equipoise /opt/equipoise
ENV PATH="/opt/equipoise/bin:${PATH}"
USER 1000
WORKDIR /work
ENTRYPOINT ["equipoise"]
