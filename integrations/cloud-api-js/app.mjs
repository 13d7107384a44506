/** A café's bot for WhatsApp's Cloud API, with whatsapp-api-js: it takes orders by a list. */
import { createServer } from "node:http";

const load = (name) => import(name);
const { WhatsAppAPI } = await load("whatsapp-api-js");
const { ActionList, Body, Interactive, ListSection, Row, Text } = await load("whatsapp-api-js/messages");

const GRAPH = "https://graph.facebook.com";
const DRINKS = { tea: "Tea", coffee: "Coffee" };

/** `graphUrl` replaces https://graph.facebook.com, for tests. */
export function makeBot({ token, appSecret, verifyToken, graphUrl = GRAPH }) {
  const ponyfill = { fetch: (url, init) => fetch(String(url).replace(GRAPH, graphUrl), init) };
  const bot = new WhatsAppAPI({ token, appSecret, webhookVerifyToken: verifyToken, v: "v24.0", ponyfill });
  /** Ids of messages that were answered: Meta, too, may deliver one twice. */
  const answered = new Set();
  bot.on.message = async ({ phoneID, recipient, message }) => {
    if (answered.has(message.id)) return;
    answered.add(message.id);
    const chosen = message.interactive?.list_reply?.id;
    const rows = Object.entries(DRINKS).map(([id, title]) => new Row(id, title));
    const reply = chosen
      ? new Text(`${DRINKS[chosen]} it is. Five minutes!`)
      : new Interactive(new ActionList("Drinks", new ListSection("All", ...rows)), new Body("What may we bring you?"));
    await bot.sendMessage(phoneID, recipient, reply);
  };
  return bot;
}

/** Serves the webhook; resolves to the server. */
export async function serve(bot, port = 0) {
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    try {
      const query = Object.fromEntries(new URL(request.url, "http://localhost").searchParams);
      const answer = request.method === "GET"
        ? bot.get(query)
        : await bot.post(JSON.parse(body), body, request.headers["x-hub-signature-256"]);
      response.writeHead(200).end(answer ?? "");
    } catch (error) {
      response.writeHead(error.httpStatus ?? 500).end();
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return server;
}
