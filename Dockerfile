# The image of Sluice: manager, worker, every command, and the Flink jars for an init container to copy.
#
#     docker build --tag sluice:0.1.0 .
#     docker run --read-only --tmpfs /tmp --volume state:/var/lib/sluice sluice:0.1.0 manager --host 0.0.0.0
#
# The command chooses the role. Nothing is written outside of data directories and /tmp.

ARG NODE_VERSION=20.20.2

# The compiler of the Flink plugin, one jar for each line of Flink.
FROM maven:3.9.9-eclipse-temurin-17 AS flink
WORKDIR /build/client/flink
COPY client/flink/pom.xml ./
COPY client/flink/src ./src
RUN for line in 1.20 2.2 2.3; do \
      mvn --batch-mode --quiet "-Pflink-$line" -Dmaven.test.skip=true package || exit 1; \
    done \
  && mkdir /jars \
  && cp target/*/sluice-flink-*.jar /jars/

# The compiler of the services, and the dependencies that they run on.
FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY client ./client
COPY shuffle-manager ./shuffle-manager
COPY shuffle-worker ./shuffle-worker
COPY runtime ./runtime
COPY cli ./cli
RUN npm run build \
  && chmod 755 dist/cli/main.js \
  && npm prune --omit=dev --no-audit --no-fund --ignore-scripts

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="Sluice" \
      org.opencontainers.image.description="A remote shuffle service for batch data processing" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0"
ENV NODE_ENV=production
WORKDIR /opt/sluice
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
COPY --from=flink /jars ./flink
COPY LICENSE ./
RUN ln -s /opt/sluice/dist/cli/main.js /usr/local/bin/sluice \
  && mkdir -p /data /var/lib/sluice \
  && chown 10001:10001 /data /var/lib/sluice
# What is relative, the manager's directory unless it is given, lies here.
WORKDIR /var/lib/sluice
USER 10001:10001
EXPOSE 9700 9710 9711
STOPSIGNAL SIGTERM
# Whichever role it is: the manager's port, else the worker's.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=6 \
  CMD ["node", "-e", "Promise.any([9700, 9711].map(async (port) => { if (!(await fetch('http://127.0.0.1:' + port + '/healthz')).ok) throw new Error() })).catch(() => process.exit(1))"]
ENTRYPOINT ["sluice"]
CMD ["--help"]
