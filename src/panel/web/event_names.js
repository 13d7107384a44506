// The events that a webhook may subscribe to. A test holds the list against the gateway's own.
export const EVENTS = [
  "message.sent",
  "message.status",
  "message.failed",
  "message.received",
  "session.connected",
  "session.disconnected",
  "session.qr",
  "message.echo",
  "webhook.failing",
  "webhook.test",
];
