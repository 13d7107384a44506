/** Client of Paloma, a self-hosted WhatsApp gateway. */
export type * from "./api.ts";
export type { Answer, Body, FileFields, Input, Kind, Operation } from "./client.ts";
export { Paloma } from "./client.ts";
export type { PalomaErrorCode } from "./errors.ts";
export { EventGapError, PalomaConnectionError, PalomaError, WebhookVerificationError } from "./errors.ts";
export type { EventsOptions, FeedEvent } from "./events.ts";
export type { RequestOptions, TransportOptions } from "./transport.ts";
export type { VerifyOptions, WebhookHeaders } from "./webhook.ts";
export { verifyWebhook } from "./webhook.ts";
