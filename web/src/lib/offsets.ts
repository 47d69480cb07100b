/** A function from byte positions in UTF-8, which the service uses, to positions in the editor's text. */
export function positions(text: string): (byte: number) => number {
  const isPlain = !/[^\x00-\x7f]/.test(text);
  if (isPlain) return (byte) => Math.min(byte, text.length);
  const starts: number[] = [];
  let position = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let i = 0; i < bytes; i++) starts.push(position);
    position += character.length;
  }
  return (byte) => starts[byte] ?? text.length;
}
