/** Returns a text as a value of a vCard 3.0: breaks and separators would start another field (RFC 2426, section 4). */
export function vcardText(text: string): string {
  return text.replaceAll(/[\\;,]/g, "\\$&").replaceAll(/\r\n|\r|\n/g, "\\n");
}
