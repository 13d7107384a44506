# On the machine's own architecture, for the image's: nothing is emulated.
FROM --platform=$BUILDPLATFORM denoland/deno:debian-2.9.6@sha256:2014dc167ece617ef7e7ba40631ac2234c59e75ce693e7cc2dc2602b3c87859d AS build
ARG TARGETARCH
WORKDIR /src
COPY deno.json deno.lock main.ts ./
COPY src src
COPY clients/typescript/src clients/typescript/src
COPY integrations/chatwoot integrations/chatwoot
COPY docs docs
COPY ops ops
COPY scripts/compile.ts scripts/packages.ts scripts/
RUN case $TARGETARCH in arm64) machine=aarch64 ;; *) machine=x86_64 ;; esac && \
    deno run -A scripts/compile.ts --target "$machine-unknown-linux-gnu" && mkdir /data

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /src/dist/paloma /usr/local/bin/paloma
COPY --from=build --chown=nonroot:nonroot /data /data
# Fewer arenas: the store's threads would keep free memory in one each.
ENV PALOMA_HOST=0.0.0.0 \
    PALOMA_DATA_DIR=/data \
    MALLOC_ARENA_MAX=2
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s --retries=3 CMD ["/usr/local/bin/paloma", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/paloma"]
CMD ["serve"]
