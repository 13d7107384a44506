/**
 * Signs with the account's passkey where the browser allows it: on web.whatsapp.com.
 *
 * A panel opens `https://web.whatsapp.com/#paloma-passkey=REQUEST`. REQUEST is JSON, percent-encoded: `options`, what is
 * to be signed (WebAuthn's PublicKeyCredentialRequestOptionsJSON), and `answerTo`, the page that waits for it. Once a
 * person agreed, the tab goes to `answerTo#SIGNED`: the credential's JSON, percent-encoded. Fragments are sent to no server.
 *
 * It runs in the page's own world, where every browser offers passkeys, and before any script of the page.
 */
(() => {
  const MARK = "#paloma-passkey=";
  const WORDS = {
    en: {
      title: "Link a device to your WhatsApp account?",
      who: "This signature goes to",
      warning:
        "Whoever gets it can link a device that reads and writes your messages. Sign only if you began this yourself, just now.",
      sign: "Sign with the passkey",
      cancel: "Cancel",
      unused: "The passkey was not used.",
      broken: "What the panel asks for can’t be read. Open this page from the panel once more.",
    },
    es: {
      title: "¿Vincular un dispositivo a tu cuenta de WhatsApp?",
      who: "Esta firma se entrega a",
      warning:
        "Quien la reciba puede vincular un dispositivo que lee y escribe tus mensajes. Firma solo si lo empezaste tú, ahora mismo.",
      sign: "Firmar con la llave de acceso",
      cancel: "Cancelar",
      unused: "No se usó la llave de acceso.",
      broken: "No se entiende lo que pide el panel. Abre esta página otra vez desde el panel.",
    },
    pt: {
      title: "Conectar um dispositivo à sua conta do WhatsApp?",
      who: "Esta assinatura vai para",
      warning:
        "Quem a receber pode conectar um dispositivo que lê e escreve suas mensagens. Assine só se foi você que começou isto agora.",
      sign: "Assinar com a chave de acesso",
      cancel: "Cancelar",
      unused: "A chave de acesso não foi usada.",
      broken: "Não dá para ler o que o painel pede. Abra esta página outra vez pelo painel.",
    },
  };
  const words = WORDS[navigator.language.slice(0, 2)] ?? WORDS.en;
  const STYLE = `
    dialog { max-width: 26rem; padding: 1.5rem; border: 0; border-radius: 12px; color: #111b21; background: #fff;
      font: 16px/1.5 system-ui, sans-serif; box-shadow: 0 8px 40px #0006 }
    dialog::backdrop { background: #000a }
    h1 { margin: 0 0 .75rem; font-size: 1.25rem; line-height: 1.3 }
    p { margin: 0 0 .75rem }
    strong { overflow-wrap: anywhere }
    .row { display: flex; gap: .5rem; justify-content: flex-end; margin-top: 1.25rem }
    button { padding: .5rem 1rem; border: 1px solid #8696a0; border-radius: 8px; background: none; color: inherit;
      font: inherit; cursor: pointer }
    .sign { border-color: #06644f; background: #06644f; color: #fff }
    button:disabled { opacity: .6; cursor: default }
    .wrong { color: #b3261e }
    .wrong:empty { display: none }`;

  if (globalThis !== globalThis.top || !location.hash.startsWith(MARK)) return;
  const request = requestOf(location.hash.slice(MARK.length));
  // Neither the page's scripts nor the history keep it.
  history.replaceState(null, "", location.pathname + location.search);
  if (document.readyState !== "loading") ask(request);
  else document.addEventListener("DOMContentLoaded", () => ask(request), { once: true });

  /** What is asked for; null when it is nothing of ours. */
  function requestOf(text) {
    try {
      const { options, answerTo } = JSON.parse(decodeURIComponent(text));
      const target = new URL(answerTo);
      if (!["https:", "http:"].includes(target.protocol) || target.username || target.hash) return null;
      return { options: PublicKeyCredential.parseRequestOptionsFromJSON(options), target };
    } catch {
      return null;
    }
  }

  function ask(request) {
    const host = document.documentElement.appendChild(document.createElement("div"));
    const root = host.attachShadow({ mode: "open" });
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    root.adoptedStyleSheets = [style];
    const dialog = add(root, "dialog");
    dialog.lang = words === WORDS.en ? "en" : navigator.language;
    dialog.addEventListener("close", () => host.remove());
    add(dialog, "h1", words.title);
    const say = (text) => (wrong.textContent = text);
    if (request) {
      add(add(dialog, "p", `${words.who} `), "strong", request.target.origin);
      add(dialog, "p", words.warning);
    }
    const wrong = add(dialog, "p", request ? "" : words.broken);
    wrong.className = "wrong";
    wrong.role = "alert";
    const row = add(dialog, "div");
    row.className = "row";
    const cancel = add(row, "button", words.cancel);
    cancel.addEventListener("click", () => dialog.close());
    if (request) {
      const sign = add(row, "button", words.sign);
      sign.className = "sign";
      sign.addEventListener("click", async () => {
        sign.disabled = true;
        say("");
        try {
          const signed = await navigator.credentials.get({ publicKey: request.options });
          request.target.hash = encodeURIComponent(JSON.stringify(signed));
          location.replace(request.target);
        } catch (error) {
          say(error.name === "NotAllowedError" ? words.unused : error.message);
          sign.disabled = false;
        }
      });
    }
    dialog.showModal();
    // Agreeing takes a step of its own: no key that was pressed before does it.
    cancel.focus();
  }

  function add(parent, tag, text = "") {
    const element = parent.appendChild(document.createElement(tag));
    element.textContent = text;
    return element;
  }
})();
