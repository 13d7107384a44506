/** What the network sends that nobody handles is counted and logged by name, and `paloma doctor --network` reports it. */
import assert from "node:assert/strict";
import { runCommand } from "../support/gateway_process.ts";
import { element, SERVER } from "../../src/sandbox/world/stanza.ts";
import { onStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

const LINE = "4915100000001";
const ANA = "4917000000001";

onStage(
  "what nobody handles is counted and logged once by name, and reported without numbers and texts",
  async (stage) => {
    await stage.addPhone(ANA);
    const line = await stage.linkLine(LINE);
    const account = stage.network.switchboard.directory.account(LINE)!;
    const [companion] = account.companions.values();
    const { notices } = stage.network.switchboard;
    const names = (texts: string[]) =>
      texts.flatMap((text) =>
        /unhandled_total\{tag="([^"]*)",type="([^"]*)"\} (\d+)/.exec(text)?.slice(1).join(" ") ?? []
      );
    for (let i = 0; i < 2; i++) {
      companion!.session!.send(element("ib", { from: SERVER }, [element("thread_metadata")]));
      companion!.session!.send(element("ib", { from: SERVER }, [element("client_expiration", { t: "1800000000" })]));
      notices.tell([account], { type: "hosted" }, [element("hosted")]);
      notices.tell([account], { type: "mex" }, [
        element("update", { op_name: "NotificationOfTomorrow" }, new Uint8Array([123, 125])),
      ]);
      notices.tell([account], { type: `+${ANA} said hello` }, []);
    }
    await stage.control.call("POST", "/faults", { line: LINE, kind: "nack", error: 479 });
    await stage.status(await stage.sendText(line, ANA, "refused"), "failed");
    companion!.session!.end(
      element("stream:error", {}, [element("ack", { class: "receipt", id: "3EB0", to: SERVER })]),
    );
    await until(async () => {
      const log = await stage.logOf(line);
      return log.some(({ msg, kind }) => msg === "a line's connection ended" && kind === "unavailable");
    }, "the end of the connection");
    await stage.sessionStatus(line, "connected");

    const metrics = await (await fetch(new URL("/metrics", stage.gateway.baseUrl))).text();
    assert.deepEqual(names(metrics.split("\n")).sort(), [
      "ib thread_metadata 2",
      "notification hosted 2",
      "notification mex:NotificationOfTomorrow 2",
      "notification other 2",
      "stream:error receipt 1",
    ]);
    const logged = stage.gateway.log().split("\n").filter((text) => /kind of stanza|not acknowledged/.test(text));
    assert.equal(logged.length, 5);

    const env = { ...stage.env, PALOMA_PORT: new URL(stage.gateway.baseUrl).port };
    const text = await until(async () => {
      const text = await runCommand(["doctor", "--network"], env);
      return text.includes("unacknowledged") ? text : null;
    }, "a report");
    for (
      const row of [
        /^Paloma \d+\.\d+\.\d+ \(deno .*\), the network in the last 24 hours:$/m,
        /^closed +restart 515 +1$/m,
        /^closed +unavailable.* 1$/m,
        /^refused +message 479 +1$/m,
        /^unacknowledged +receipt +1$/m,
        /^unhandled +ib thread_metadata +2$/m,
        /^unhandled +notification mex:NotificationOfTomorrow +2$/m,
        /^unhandled +notification other +2$/m,
        /^version +2\.3000\.\d+ \(.*\) +\d$/m,
      ]
    ) assert.match(text, row);
    assert.doesNotMatch(text, /49\d{6}|refused\s*$|@|hello|ses_/m);
    const { encounters } = JSON.parse(await runCommand(["doctor", "--network", "--json"], env));
    assert.ok(encounters.every(({ kind, name, count }: Record<string, unknown>) => kind && name && Number(count) > 0));
  },
);
