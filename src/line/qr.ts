/** The one place where a QR text becomes the picture that the API, the panel and events show. */
import QRCode from "qrcode";

/** In a code most rows repeat the one above: a third of the time of trying every filter, and a smaller picture. */
const PNG = { filterType: 2, deflateStrategy: 0, deflateLevel: 6 };

/** A data URL of a PNG, `data:image/png;base64,…` (spec, "Session QR / pairing result"). */
export function qrDataUrl(text: string): Promise<string> {
  return QRCode.toDataURL(text, { errorCorrectionLevel: "M", margin: 4, scale: 6, rendererOpts: PNG });
}
