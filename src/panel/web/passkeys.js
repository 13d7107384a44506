// Passkeys, with the browser's own API. Browsers do not accept them for IP addresses.
import { call, CallError } from "./api.js";
import { t } from "./i18n.js";

export const canPasskey = () =>
  Boolean(globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON) && isSecureContext &&
  !/^[\d.]+$|^\[/.test(location.hostname);

async function ask(work) {
  try {
    return (await work()).toJSON();
  } catch (error) {
    const detail = error.name === "NotAllowedError" ? t("The passkey was not used.") : error.message;
    throw new CallError({ code: "passkey", detail });
  }
}

export async function passkeySignIn() {
  const { data } = await call("POST", "/sign-in/passkey/options");
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(data);
  const response = await ask(() => navigator.credentials.get({ publicKey }));
  await call("POST", "/sign-in/passkey", { body: { response } });
}

export async function addPasskey(name, password) {
  const { data } = await call("POST", "/me/passkeys/options", { body: { password } });
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(data);
  const response = await ask(() => navigator.credentials.create({ publicKey }));
  await call("POST", "/me/passkeys", { body: { name, response } });
}
