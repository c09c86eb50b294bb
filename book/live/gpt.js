// The GPT of lesson 16 in plain JavaScript: what attnlib.models.GPT computes, number by number, and no library.
// A matrix is a Float32Array, row after row: x has n rows of d numbers, a row for each token.

// --- the one function -----------------------------------------------------------------------------------------------

/**
 * out = softmax(q kᵀ / √d_k) v, for n queries and n keys of d_k numbers, and n values of d_v.
 * causal: a token gives no weight to those after it. `scores` and `weights` are n × n, a row for each query.
 */
function attention(q, k, v, n, d_k, causal = false) {
  const scores = new Float32Array(n * n).fill(-Infinity), weights = new Float32Array(n * n);
  const d_v = v.length / n, out = new Float32Array(n * d_v);
  for (let i = 0; i < n; i++) {
    const n_seen = causal ? i + 1 : n; // how many keys query i sees
    for (let j = 0; j < n_seen; j++) {
      let product = 0;
      for (let c = 0; c < d_k; c++) product += q[i * d_k + c] * k[j * d_k + c];
      scores[i * n + j] = product / Math.sqrt(d_k);
    }
    weights.set(softmax(scores.subarray(i * n, i * n + n_seen)), i * n);
    for (let j = 0; j < n_seen; j++)
      for (let c = 0; c < d_v; c++) out[i * d_v + c] += weights[i * n + j] * v[j * d_v + c];
  }
  return { scores, weights, out };
}

/** softmax(z / temperature). */
function softmax(z, temperature = 1) {
  const p = new Float32Array(z.length);
  let most = -Infinity, sum = 0;
  for (let i = 0; i < z.length; i++) most = Math.max(most, z[i]);
  for (let i = 0; i < z.length; i++) sum += p[i] = Math.exp((z[i] - most) / temperature);
  for (let i = 0; i < z.length; i++) p[i] /= sum;
  return p;
}

// --- what stands around it ------------------------------------------------------------------------------------------

/** x W + b, W of shape (rows, columns). Four rows of x at a time, so that a weight that was fetched serves four. */
function linear(x, n, W, b) {
  const rows = x.length / n, columns = b.length, y = new Float32Array(n * columns);
  for (let t = 0; t < n; t += 4) {
    const [x0, x1, x2, x3] = [0, 1, 2, 3].map((r) => Math.min(t + r, n - 1) * rows); // past the end: the last again
    for (let j = 0; j < columns; j++) {
      let y0 = b[j], y1 = y0, y2 = y0, y3 = y0;
      for (let i = 0, w = j; i < rows; i++, w += columns) {
        y0 += x[x0 + i] * W[w];
        y1 += x[x1 + i] * W[w];
        y2 += x[x2 + i] * W[w];
        y3 += x[x3 + i] * W[w];
      }
      y[t * columns + j] = y0;
      if (t + 1 < n) y[(t + 1) * columns + j] = y1;
      if (t + 2 < n) y[(t + 2) * columns + j] = y2;
      if (t + 3 < n) y[(t + 3) * columns + j] = y3;
    }
  }
  return y;
}

/** Each row: mean 0, variance 1, then scaled and shifted. */
function layerNorm(x, n, scale, shift, eps) {
  const d = scale.length, y = new Float32Array(n * d);
  for (let t = 0; t < n; t++) {
    let mean = 0, variance = 0;
    for (let i = 0; i < d; i++) mean += x[t * d + i] / d;
    for (let i = 0; i < d; i++) variance += (x[t * d + i] - mean) ** 2 / d;
    const std = Math.sqrt(variance + eps);
    for (let i = 0; i < d; i++) y[t * d + i] = ((x[t * d + i] - mean) / std) * scale[i] + shift[i];
  }
  return y;
}

/** GELU, as GPT-2 approximates it. */
function gelu(z) {
  return z / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (z + 0.044715 * z ** 3)));
}

/** The residual connection: x + y, in place. */
function add(x, y) {
  for (let i = 0; i < x.length; i++) x[i] += y[i];
}

/** `count` columns of x, from column `start` on. */
function columns(x, n, start, count) {
  const width = x.length / n, part = new Float32Array(n * count);
  for (let t = 0; t < n; t++) part.set(x.subarray(t * width + start, t * width + start + count), t * count);
  return part;
}

/** Put `part` into the columns of x from `start` on. */
function setColumns(x, n, start, part) {
  const width = x.length / n, count = part.length / n;
  for (let t = 0; t < n; t++) x.set(part.subarray(t * count, (t + 1) * count), t * width + start);
}

/** n rows, each the mean of x's rows. */
function meanRows(x, n) {
  const width = x.length / n, y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) for (let t = 0; t < n; t++) y[t * width + (i % width)] += x[i] / n;
  return y;
}

// --- the model ------------------------------------------------------------------------------------------------------

class GPT {
  // The parts of a layer: what attnlib calls them, and what GPT-2's file does.
  static parts = {
    "self_attention_residual.norm": "ln_1",
    "self_attention.in_proj": "attn.c_attn",
    "self_attention.out_proj": "attn.c_proj",
    "feed_forward_residual.norm": "ln_2",
    "feed_forward.linear1": "mlp.c_fc",
    "feed_forward.linear2": "mlp.c_proj",
  };

  /** Settings and tensors as GPT-2 names them. */
  constructor(config, tensors) {
    this.d_model = config.n_embd;
    this.n_heads = config.n_head;
    this.n_layers = config.n_layer;
    this.n_max = config.n_positions;
    this.eps = config.layer_norm_epsilon;
    this.weightAndBias = (name) => ["weight", "bias"].map((end) => tensors[`transformer.${name}.${end}`]);
    [this.token_embedding] = this.weightAndBias("wte");
    [this.positional] = this.weightAndBias("wpe");
  }

  /**
   * What comes after the last token (`logits`), and every head's `weights`: weights[layer][head] is n × n.
   *
   * cuts[layer] lists heads whose output is taken away, before W_O: replaceBy = "zero" puts zeros in its place, "mean"
   * its mean over the tokens of this text. `trained` is what came of the same tokens with nothing cut: the layers below
   * the first cut are taken from it.
   */
  forward(tokens, cuts = [], replaceBy = "zero", trained = null) {
    const n = tokens.length;
    let first = 0;
    if (trained) while (first < this.n_layers && !cuts[first]?.length) first++;
    const weights = trained ? trained.weights.slice(0, first) : [];
    const inputs = trained ? trained.inputs.slice(0, first + 1) : [this.embed(tokens)]; // of each layer, and the end's
    for (let l = first; l < this.n_layers; l++) {
      const layer = this.layer(l, inputs[l], n, cuts[l] ?? [], replaceBy);
      weights.push(layer.weights);
      inputs.push(layer.out);
    }
    const last = inputs.at(-1).subarray(-this.d_model);
    return { logits: this.lm_head(layerNorm(last, 1, ...this.weightAndBias("ln_f"), this.eps)), weights, inputs };
  }

  /** x E + P. */
  embed(tokens) {
    const d = this.d_model, x = new Float32Array(tokens.length * d);
    for (let t = 0; t < tokens.length; t++)
      for (let i = 0; i < d; i++) x[t * d + i] = this.token_embedding[tokens[t] * d + i] + this.positional[t * d + i];
    return x;
  }

  /** An encoder layer under the causal mask: attention, then a feed-forward network, each normed before, added after. */
  layer(l, x, n, cut, replaceBy) {
    const own = (part) => this.weightAndBias(`h.${l}.${GPT.parts[part]}`), out = x.slice();
    const norm = (part) => layerNorm(out, n, ...own(part), this.eps);
    const project = (part, x) => linear(x, n, ...own(part));

    const heads = this.heads(project("self_attention.in_proj", norm("self_attention_residual.norm")), n, cut, replaceBy);
    add(out, project("self_attention.out_proj", heads.out));
    const hidden = project("feed_forward.linear1", norm("feed_forward_residual.norm")).map(gelu);
    add(out, project("feed_forward.linear2", hidden));
    return { out, weights: heads.weights };
  }

  /** Every head attends by itself; their outputs stand side by side. A row of qkv is [q | k | v], of all heads. */
  heads(qkv, n, cut, replaceBy) {
    const d = this.d_model, d_head = d / this.n_heads, out = new Float32Array(n * d), weights = [];
    for (let h = 0; h < this.n_heads; h++) {
      const [q, k, v] = [0, d, 2 * d].map((start) => columns(qkv, n, start + h * d_head, d_head));
      const head = attention(q, k, v, n, d_head, true);
      weights.push(head.weights);
      if (!cut.includes(h)) setColumns(out, n, h * d_head, head.out);
      else if (replaceBy === "mean") setColumns(out, n, h * d_head, meanRows(head.out, n));
    }
    return { out, weights };
  }

  /** z Eᵀ: a logit for every token. */
  lm_head(z) {
    const d = this.d_model, E = this.token_embedding, logits = new Float32Array(E.length / d);
    for (let k = 0; k < logits.length; k++) for (let i = 0; i < d; i++) logits[k] += z[i] * E[k * d + i];
    return logits;
  }
}

// --- reading what the course ships ----------------------------------------------------------------------------------

/** The bytes of a Base64 text. */
function fromBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** The tensors of a safetensors file in half precision: 8 bytes with the header's length, the header, the numbers. */
function readSafetensors(bytes) {
  const length = Number(new DataView(bytes.buffer).getBigUint64(0, true)), tensors = {};
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  delete header.__metadata__;
  for (const [name, { dtype, data_offsets: [start, stop] }] of Object.entries(header)) {
    if (dtype !== "F16") throw new Error(`${name} is ${dtype}; half precision (F16) is what is read here`);
    tensors[name] = fromHalf(new Uint16Array(bytes.buffer.slice(8 + length + start, 8 + length + stop)));
  }
  return tensors;
}

/** Half precision: one bit of sign, five of exponent, ten of fraction. */
function fromHalf(halves) {
  const all = new Float32Array(65536); // there are only so many
  for (let h = 0; h < 65536; h++) {
    const sign = h >> 15 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
    const value = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    all[h] = sign * (exponent === 31 ? (fraction ? NaN : Infinity) : value);
  }
  const numbers = new Float32Array(halves.length);
  for (let i = 0; i < numbers.length; i++) numbers[i] = all[halves[i]];
  return numbers;
}

// --- a thread of its own, so that typing never waits ----------------------------------------------------------------

/** What runs there: { tokens, cuts, replaceBy } comes in, the logits and the weights for each of the cuts go out. */
function serve() {
  let gpt, tokens = [], trained;
  onmessage = ({ data }) => {
    if (data.shipped) {
      gpt = new GPT(data.shipped.config, readSafetensors(fromBase64(data.shipped.weights)));
      return;
    }
    if (String(tokens) !== String(data.tokens)) [tokens, trained] = [data.tokens, gpt.forward(data.tokens)];
    const runs = data.cuts.map((cuts) => gpt.forward(tokens, cuts, data.replaceBy, trained));
    postMessage(runs.map(({ logits, weights }) => ({ logits, weights: data.maps ? weights : null })));
  };
}

/** The thread: its script is the text of the functions above, since a page that was opened from a file may load none. */
function startThread(shipped) {
  const parts = [
    attention, softmax, linear, layerNorm, gelu, add, columns, setColumns, meanRows, GPT,
    fromBase64, readSafetensors, fromHalf, serve,
  ];
  const thread = new Worker(URL.createObjectURL(new Blob([parts.join("\n"), "\nserve();"])));
  thread.postMessage({ shipped: { config: shipped.config, weights: shipped.weights } });
  let before = Promise.resolve(); // answers come in the order of the questions
  return (question) => {
    const answer = before.then(() => new Promise((resolve) => {
      thread.onmessage = ({ data }) => resolve(data);
      thread.postMessage(question);
    }));
    before = answer;
    return answer;
  };
}
