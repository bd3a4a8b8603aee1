# To build:  docker build -t mha-viz .
# To run:    docker run --rm -p 127.0.0.1:8501:8501 --read-only --tmpfs /tmp --memory 4g --ulimit nofile=65536 --init mha-viz
#
# What is in it:  docker run --rm mha-viz cat /app/mha-viz.cdx.json   (a bill of materials, CycloneDX)
#
# The version of the base is exact. To hold it to one build as well, append the digest that
# `docker buildx imagetools inspect python:3.11.16-slim-bookworm` prints. The day beside a version is the one on which it
# was the newest of its line; tests/test_pins.py refuses what is older than 180 days.
# pinned 2026-11-24
FROM python:3.11.16-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv --without-pip /app
WORKDIR /source

# torch alone comes from PyTorch's own index, which has the build without CUDA, several GB smaller. All else comes from
# the usual index and by hash: neither index can answer for a package of the other.
COPY requirements.txt deploy/requirements.lock deploy/build.lock ./
RUN pip --python /app/bin/python install --no-deps --index-url https://download.pytorch.org/whl/cpu \
    "$(grep '^torch==' requirements.txt)"
RUN pip --python /app/bin/python install --no-deps --require-hashes --only-binary :all: -r requirements.lock
RUN pip install --no-deps --require-hashes --only-binary :all: -r build.lock

COPY pyproject.toml README.md LICENSE CITATION.cff app.py ./
COPY .streamlit .streamlit
COPY assets assets
COPY docs docs
COPY pages pages
COPY mha_viz mha_viz
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /app/bin/python install --no-deps dist/mha_viz-*.whl \
    && pip --python /app/bin/python check
RUN python -m cyclonedx_py environment --output-reproducible --of JSON -o /app/mha-viz.cdx.json /app/bin/python

# pinned 2026-11-24
FROM python:3.11.16-slim-bookworm
# /models holds downloaded models, and may be mounted read-only; /measured what the app measures. Nothing else is
# written but to /tmp. Both take the owner named here when a fresh volume is mounted over them.
RUN pip uninstall --yes pip setuptools wheel \
    && useradd --uid 10001 --no-create-home --home-dir /tmp viewer \
    && install --directory --owner viewer --group viewer /models /measured
COPY --from=build /app /app
COPY deploy/healthy /app/bin/healthy

ENV PATH=/app/bin:$PATH HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib HF_HUB_CACHE=/models MHA_VIZ_HOME=/measured
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TOKENIZERS_PARALLELISM=false
# Visitors of a hosted server choose from a list. Where it is empty and HOST is not loopback, they choose from all models
# whose files are here, unless MHA_VIZ_ACCESS=open lets them name any model or folder.
ENV MHA_VIZ_MODELS=minilm,toy,repeater
ENV HOST=0.0.0.0 PORT=8501 STREAMLIT_SERVER_HEADLESS=true
USER 10001:10001
# Nothing can be written here, so that no file lies where a process starts.
WORKDIR /
EXPOSE 8501

# Its answer is read: a server that only accepts connections is not healthy.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["healthy"]
STOPSIGNAL SIGTERM
CMD ["mha-viz", "serve"]
