/**
 * The sandbox's control API: HTTP on loopback, with which a person or a test operates the simulated phones, creates
 * groups, injects faults, and reads the log of sent stanzas. It stands for the world outside the gateway.
 */
import { Hono } from "@hono/hono";
import { z } from "zod";
import { notFound, Problem } from "../../errors.ts";
import { AttachmentError } from "../phone/attachment.ts";
import { faultRoutes } from "./faults.ts";
import { groupRoutes } from "./groups.ts";
import { phoneRoutes } from "./phones.ts";
import { body, type ControlledNetwork, TEMPLATE_STATUSES } from "./request.ts";

/**
 * Whether the URL's host is this machine by address or `localhost`. Rejects other names that resolve to it, so that no
 * web page can reach the API by DNS rebinding.
 */
function isHere(url: string): boolean {
  return URL.canParse(url) && /^(127(\.\d+){3}|localhost|\[::1\])$/.test(new URL(url).hostname);
}

/** Returns the routes for one network. */
export function controlApp(network: ControlledNetwork): Hono {
  const app = new Hono();
  const { switchboard, url, rootKey, mediaUrl, caPem } = network;

  app.use(async (c, next) => {
    const places = [c.req.url, c.req.header("origin") ?? c.req.url];
    if (!places.every(isHere)) throw new Problem("domain_not_allowed", "This is for programs on the same machine.");
    await next();
  });
  app.get("/network", (c) => c.json({ url, rootKey, mediaUrl, ca: caPem }));
  app.route("/phones", phoneRoutes(network));
  app.route("/groups", groupRoutes(switchboard));
  app.route("/faults", faultRoutes(switchboard));
  app.post("/templates/:name", async (c) => {
    const { status } = await body(c, z.strictObject({ status: z.enum(TEMPLATE_STATUSES) }));
    const name = c.req.param("name");
    network.templates.set(name, status);
    return c.json({ name, status });
  });
  app.get("/wire", (c) => c.json(switchboard.wire.entries(c.req.query("line"))));

  app.notFound(() => render(notFound("address")));
  app.onError((error) => {
    if (error instanceof Problem) return render(error);
    const { log } = switchboard.runtime;
    if (error instanceof AttachmentError) {
      log.warn({ err: error }, "a phone could not transfer a file");
      return render(new Problem("network_error", `${error.message}.`));
    }
    log.error({ err: error }, "the sandbox's control API failed");
    return render(new Problem("internal_error", "The sandbox could not do that; its log says why."));
  });
  return app;
}

function render({ code, status, message, extras }: Problem): Response {
  const problem = { code, status, detail: message, errors: extras.errors };
  return Response.json(problem, { status, headers: { "content-type": "application/problem+json" } });
}
