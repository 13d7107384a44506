/** Length and waveform of a voice note, by decoding its Opus (WASM): what phones draw before they have the file. */
import { OggOpusDecoder } from "ogg-opus-decoder";

/** The bars that apps draw, each from 0 to 100. */
const BARS = 64;
/** About two minutes; longer notes go without a waveform, since decoding takes time. */
const DECODED_BYTES = 256 * 1024;
const OPUS_RATE = 48_000;

/** Never throws: a file that can't be decoded goes without. */
export async function voiceFacts(bytes: Uint8Array): Promise<{ seconds?: number; waveform?: Uint8Array }> {
  const seconds = secondsOf(bytes);
  const waveform = bytes.length <= DECODED_BYTES ? await waveformOf(bytes).catch(() => null) : null;
  return { ...(seconds ? { seconds } : {}), ...(waveform ? { waveform } : {}) };
}

/** From the position that the last page states (RFC 7845, section 4). */
function secondsOf(bytes: Uint8Array): number | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = bytes.length - 27; at >= 0; at--) {
    if (view.getUint32(at) !== 0x4f676753) continue; // "OggS"
    const samples = Number(view.getBigInt64(at + 6, true));
    return samples > 0 ? Math.max(1, Math.round(samples / OPUS_RATE)) : null;
  }
  return null;
}

async function waveformOf(bytes: Uint8Array): Promise<Uint8Array | null> {
  const decoder = new OggOpusDecoder();
  try {
    await decoder.ready;
    const { channelData: [channel], samplesDecoded } = await decoder.decodeFile(bytes);
    return channel && samplesDecoded > 0 ? barsOf(channel) : null;
  } finally {
    decoder.free();
  }
}

/** The mean of each stretch, the loudest being 100. */
function barsOf(channel: Float32Array): Uint8Array {
  const means = Array.from({ length: BARS }, (_, bar) => {
    const from = Math.floor(bar * channel.length / BARS);
    const to = Math.max(from + 1, Math.floor((bar + 1) * channel.length / BARS));
    let sum = 0;
    for (let i = from; i < to; i++) sum += Math.abs(channel[i] ?? 0);
    return sum / (to - from);
  });
  const loudest = Math.max(...means);
  return Uint8Array.from(means, (mean) => loudest > 0 ? Math.round(100 * mean / loudest) : 0);
}
