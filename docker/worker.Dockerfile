# The Python package, to run workers, pumps and every other emq-native command.
#   docker build -f docker/worker.Dockerfile -t emq-native-worker .
# An app goes on top: FROM emq-native-worker, COPY shop.py /app/, CMD ["worker", "shop:app"].
# BASE_IMAGE is an image of Debian or Alpine with Python 3.10 or newer.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS build
# Python's headers are in the public images; a Python of the distribution has them in a package.
RUN if ls "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; then headers=; else headers=python3-dev; fi; \
    if command -v apk; then apk add --no-cache gcc musl-dev make $headers; \
    else apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make $headers; fi
RUN python3 -m venv /opt/build
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY module /source/module
COPY python /source/python
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source \
    && python3 -m venv /opt/emq && /opt/emq/bin/pip install --no-cache-dir /wheels/*.whl

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="emq-native-worker" \
      org.opencontainers.image.description="Workers and the command line of emq-native" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.source=""
COPY --from=build /opt/emq /opt/emq
# What a task prints is to be seen at once.
ENV PATH=/opt/emq/bin:$PATH PYTHONUNBUFFERED=1
USER 999
WORKDIR /app
ENTRYPOINT ["emq-native"]
CMD ["--help"]
