// Byte-pair encoding as `tokenizer.json` describes it: bytes, cut into words as GPT-2 does, then joined pair by pair.

class BytePairs {
  constructor({ vocab, merges, special }) {
    this.ids = new Map(Object.entries(vocab));
    this.rank = new Map(merges.map((pair, i) => [pair, i]));
    this.special = new Map(Object.entries(special)); // tokens that stand for no letters, such as the end of a page
    this.pieces = [];
    for (const [piece, id] of [...this.ids, ...this.special]) this.pieces[id] = piece;

    // Each byte is written as one letter: itself where it can be seen, else one from 256 on.
    this.letter = [];
    for (let byte = 0, next = 256; byte < 256; byte++) {
      const seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      this.letter[byte] = String.fromCharCode(seen ? byte : next++);
    }
    this.byte = new Map(this.letter.map((letter, byte) => [letter, byte]));
    const escaped = [...this.special.keys()].map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    this.between = new RegExp(`(${escaped.join("|")})`);
  }

  /** The tokens of a text. */
  encode(text) {
    const space = "\\p{White_Space}";
    const words = new RegExp(
      `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${space}\\p{L}\\p{N}]+|${space}+(?!\\P{White_Space})|${space}+`,
      "gu",
    );
    const known = (part) => this.special.has(part) ? [this.special.get(part)] : null;
    return text.split(this.between).flatMap((part) => known(part) ??
      (part.match(words) ?? []).flatMap((word) => this.merge(word)));
  }

  /** Join, again and again, the two neighbours that were joined first in training. */
  merge(word) {
    const parts = [...new TextEncoder().encode(word)].map((byte) => this.letter[byte]);
    while (parts.length > 1) {
      let best = Infinity, at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.rank.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) break;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
    return parts.map((part) => this.ids.get(part));
  }

  /** The text of tokens. */
  decode(ids) {
    const bytes = ids.flatMap((id) => [...this.pieces[id]].map((letter) => this.byte.get(letter)));
    return new TextDecoder().decode(Uint8Array.from(bytes));
  }
}
