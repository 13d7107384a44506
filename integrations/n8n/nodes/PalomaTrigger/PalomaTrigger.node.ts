import type {
  IDataObject,
  IHookFunctions,
  INodeType,
  INodeTypeDescription,
  IWebhookFunctions,
  IWebhookResponseData,
} from "n8n-workflow";
import { NodeConnectionTypes } from "n8n-workflow";
import { getLines } from "../shared/lines";
import { call } from "../shared/request";
import { isSigned } from "../shared/signature";
import { EVENTS } from "./events";

/** What a registered webhook needs later; n8n keeps it with the workflow. */
interface Registered extends IDataObject {
  webhookId?: string;
  secret?: string;
}

/** The webhook that this node wants. */
function wanted(hook: IHookFunctions) {
  return {
    url: hook.getNodeWebhookUrl("default")!,
    events: [...hook.getNodeParameter("events") as string[]].sort(),
    sessionId: (hook.getNodeParameter("sessionId") as string) || null,
    chats: hook.getNodeParameter("chats") as string,
  };
}

export class PalomaTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Paloma Trigger",
    name: "palomaTrigger",
    icon: { light: "file:../../icons/paloma.svg", dark: "file:../../icons/paloma.dark.svg" },
    group: ["trigger"],
    version: 1,
    subtitle: '={{$parameter["events"].join(", ")}}',
    description: "Starts when something happens on a WhatsApp line of Paloma",
    defaults: { name: "Paloma Trigger" },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: "palomaApi", required: true }],
    webhooks: [{ name: "default", httpMethod: "POST", responseMode: "onReceived", path: "webhook" }],
    properties: [
      {
        displayName: "Events",
        name: "events",
        type: "multiOptions",
        options: EVENTS,
        default: ["message.received"],
        required: true,
      },
      {
        displayName: "Line Name or ID",
        name: "sessionId",
        type: "options",
        typeOptions: { loadOptionsMethod: "getLines" },
        default: "",
        description:
          'Only events of this line; all lines if left out. Choose from the list, or specify an ID using an <a href="https://docs.n8n.io/code/expressions/">expression</a>.',
      },
      {
        displayName: "Chats",
        name: "chats",
        type: "options",
        options: [
          { name: "All", value: "all" },
          { name: "Direct Chats Only", value: "direct" },
          { name: "Groups Only", value: "groups" },
        ],
        default: "all",
        description: "Of which chats to get events; those that belong to no chat always come",
      },
    ],
    usableAsTool: undefined,
  };

  methods = { loadOptions: { getLines } };

  webhookMethods = {
    default: {
      /** A webhook of ours that is no longer as it should be, or whose secret is lost, is removed. */
      async checkExists(this: IHookFunctions): Promise<boolean> {
        const { webhookId } = this.getWorkflowStaticData("node") as Registered;
        const { url, events, sessionId, chats } = wanted(this);
        const { body } = await call(this, { method: "GET", path: "/v1/webhooks" });
        let exists = false;
        for (const hook of (body.data as IDataObject[]).filter((hook) => hook.url === url)) {
          const isSame = hook.id === webhookId && hook.active && hook.sessionId === sessionId && hook.chats === chats &&
            [...hook.events as string[]].sort().join() === events.join();
          if (isSame) exists = true;
          else await call(this, { method: "DELETE", path: `/v1/webhooks/${String(hook.id)}`, allow: [404] });
        }
        return exists;
      },

      async create(this: IHookFunctions): Promise<boolean> {
        const { body } = await call(this, { method: "POST", path: "/v1/webhooks", body: wanted(this) });
        const { id, secret } = body.data as { id: string; secret: string };
        Object.assign(this.getWorkflowStaticData("node"), { webhookId: id, secret } satisfies Registered);
        return true;
      },

      async delete(this: IHookFunctions): Promise<boolean> {
        const registered = this.getWorkflowStaticData("node") as Registered;
        if (registered.webhookId) {
          await call(this, { method: "DELETE", path: `/v1/webhooks/${registered.webhookId}`, allow: [404] });
        }
        delete registered.webhookId;
        delete registered.secret;
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData("node") as Registered;
    const { rawBody } = this.getRequestObject();
    if (!secret || !isSigned(rawBody, this.getHeaderData(), secret)) {
      this.getResponseObject().status(401).json({ message: "The signature is not valid" });
      return { noWebhookResponse: true };
    }
    const event = this.getBodyData();
    // A test of the webhook is answered, and starts nothing.
    if (event.event === "webhook.test") return {};
    // The id stays the same if the gateway delivers an event again.
    return { workflowData: [[{ json: { id: this.getHeaderData()["webhook-id"], ...event } }]] };
  }
}
