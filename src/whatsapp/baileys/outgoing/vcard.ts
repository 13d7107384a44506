/** A contact as a vCard 3.0 (RFC 2426), with the parameter by which phones find the account behind the number. */
export function vcardOf(
  { name, phone, organization }: { name: string; phone: string; organization: string | null },
): string {
  return [
    "BEGIN:VCARD",
    "VERSION:3.0",
    `FN:${escaped(name)}`,
    `N:${escaped(name)};;;;`,
    ...(organization ? [`ORG:${escaped(organization)}`] : []),
    `TEL;type=CELL;type=VOICE;waid=${phone}:+${phone}`,
    "END:VCARD",
  ].join("\n");
}

/** Line breaks and separators would begin another field (RFC 2426, section 4). */
function escaped(text: string): string {
  return text.replaceAll(/[\\;,]/g, "\\$&").replaceAll(/\r\n|\r|\n/g, "\\n");
}
