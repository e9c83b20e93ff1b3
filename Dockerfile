# engram on a CPU, as a user who is not root, with everything it writes under /data and /tmp: the rest may be read-only.
#
#   docker build -t engram .
#   docker run --read-only --tmpfs /tmp -v "$PWD/models:/data" -p 127.0.0.1:8000:8000 engram
#
# pip's variables are taken from the build. docs/install.md has more.

FROM python:3.12-slim AS build
ARG PIP_INDEX_URL
COPY pyproject.toml README.md LICENSE constraints.txt /source/
COPY src /source/src
RUN python -m venv /opt/engram \
 && /opt/engram/bin/pip install --no-cache-dir --constraint /source/constraints.txt "/source[web]"

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home engram && install --directory --owner engram /data
COPY --from=build /opt/engram /opt/engram
ENV PATH="/opt/engram/bin:$PATH" \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    XDG_CACHE_HOME=/tmp/cache
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000 9090
# The icon is all that the page shows to somebody without its token.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/icon.svg', timeout=4)"]
ENTRYPOINT ["engram"]
CMD ["serve", "/data/model.engram", "--host", "0.0.0.0", "--no-open", "--token-file", "/data/token"]
