/**
 * Errors of the panel's API. They are like the public API's problems, but with codes of their own, which are not part
 * of the public API.
 */

const CODES = {
  sign_in_required: 401,
  sign_in_failed: 401,
  second_factor_required: 401,
  not_permitted: 403,
  link_dead: 404,
  login_taken: 409,
  totp_in_use: 409,
  too_many_attempts: 429,
} as const;
type RefusalCode = keyof typeof CODES;

export class Refusal extends Error {
  override name = "Refusal";
  readonly code: RefusalCode;
  /** Seconds after which a retry makes sense. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: RefusalCode, detail: string, options: { retryAfterSeconds?: number } = {}) {
    super(detail);
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  get status(): number {
    return CODES[this.code];
  }
}
