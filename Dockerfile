FROM python:3.11-slim

# PyTorch's own index has the build without CUDA, which is several GB smaller.
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false

RUN useradd --create-home --uid 10001 viewer
WORKDIR /source

# The dependencies change rarely: a layer of their own.
COPY requirements.txt ./
RUN pip install -r requirements.txt
COPY . .
RUN pip install --no-deps . && rm -rf /source/*

USER viewer
WORKDIR /home/viewer
# Visitors of a hosted server choose from a list; empty it to let them name any model or folder of this machine.
ENV MHA_VIZ_MODELS=minilm
ENV HOST=0.0.0.0 PORT=8501 STREAMLIT_SERVER_HEADLESS=true
EXPOSE 8501

# Unknown paths answer 200 as well, so the body is what counts.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", \
  "import os, urllib.request as r; u = f'http://127.0.0.1:{os.environ[\"PORT\"]}/_stcore/health'; exit(r.urlopen(u, timeout=4).read() != b'ok')"]

CMD ["mha-viz", "serve"]
