import type { INodePropertyOptions } from "n8n-workflow";

/** What a trigger may listen to: the gateway's events, but for the one of a test. */
export const EVENTS: INodePropertyOptions[] = [
  { name: "Bulk Finished", value: "bulk.finished", description: "Every message of a bulk was sent or has failed" },
  { name: "Call Received", value: "call.received", description: "Somebody calls the line" },
  { name: "Choice Made", value: "choice.made", description: "Somebody chose an option of choices" },
  { name: "Group Participants", value: "group.participants", description: "Somebody joined, left or was promoted" },
  { name: "Group Updated", value: "group.updated", description: "A group's name or settings changed" },
  { name: "Message Deleted", value: "message.deleted", description: "A message was deleted for everyone" },
  { name: "Message Edited", value: "message.edited", description: "A message was edited" },
  { name: "Message Failed", value: "message.failed", description: "A message will not be sent" },
  { name: "Message Proposed", value: "message.proposed", description: "A message waits for a person to approve it" },
  { name: "Message Received", value: "message.received", description: "Somebody wrote to the line" },
  { name: "Message Sent", value: "message.sent", description: "The network has acknowledged a message" },
  { name: "Message Status", value: "message.status", description: "A message was delivered or read" },
  { name: "Message Written on the Phone", value: "message.echo", description: "The owner wrote on the phone" },
  { name: "Poll Vote", value: "poll.vote", description: "Somebody voted in a poll" },
  { name: "Presence Updated", value: "presence.updated", description: "Somebody types, or is online" },
  { name: "Recipient Opted Out", value: "recipient.opted_out", description: "Somebody wants no more messages" },
  { name: "Session Connected", value: "session.connected", description: "A line is connected" },
  { name: "Session Degraded", value: "session.degraded", description: "A line works, but not entirely" },
  { name: "Session Disconnected", value: "session.disconnected", description: "A line lost its connection" },
  { name: "Session Passkey", value: "session.passkey", description: "Linking a line needs a passkey" },
  { name: "Session QR", value: "session.qr", description: "A line shows a new QR" },
  { name: "Session Restricted", value: "session.restricted", description: "The network has restricted a line" },
  {
    name: "Verification Failed",
    value: "verification.failed",
    description: "Another number sent the code, or nobody did in time",
  },
  {
    name: "Verification Passed",
    value: "verification.passed",
    description: "Somebody sent the code of their verification",
  },
  { name: "Webhook Disabled", value: "webhook.disabled", description: "A webhook was switched off" },
  { name: "Webhook Failing", value: "webhook.failing", description: "A webhook cannot be delivered" },
];
