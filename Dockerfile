# The course in JupyterLab, for one person: docker build -t attention . && docker run -p 127.0.0.1:8888:8888 attention
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home reader
USER reader
WORKDIR /home/reader/course
COPY --chown=reader . .
# The CPU build of torch, from where PyTorch keeps it, saves 4 GB; then everything else as `make lab` sets it up.
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
RUN make .venv/learner
EXPOSE 8888
HEALTHCHECK --interval=30s --start-period=60s CMD .venv/bin/python tools/server_answers.py 8888
CMD ["make", "lab", "LAB_ARGS=--ip=0.0.0.0 --port=8888 --no-browser"]
