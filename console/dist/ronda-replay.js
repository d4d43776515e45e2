// src/core/wait.ts
var e = class {
	asked = /* @__PURE__ */ new Set();
	paused = !1;
	limited = !1;
	model = !1;
	tools = 0;
	person() {
		return this.asked.size > 0 || this.paused;
	}
	under() {
		return this.model ? "model" : this.tools > 0 ? "tool" : this.person() ? "human" : "queue";
	}
	toolEnded() {
		return this.tools = Math.max(this.tools - 1, 0), "tool";
	}
	apply(e) {
		let t = e.b, n;
		switch (e.k) {
			case "ModelCallStarted": return n = this.under(), (t.attempt ?? 0) > 1 && !this.person() && (n = this.limited ? "rate_limit" : "back_off"), this.model = !0, this.limited = this.paused = !1, this.asked.clear(), n;
			case "ModelReplied": return this.model = !1, "model";
			case "ModelFailed": return this.model = !1, this.limited = t.status === 429 || t.status === 529 || (t.retry_after ?? 0) > 0, "model";
			case "ToolStarted": return n = this.under(), (t.attempt ?? 0) > 1 && this.tools === 0 && !this.person() && (n = "back_off"), this.tools++, n;
			case "ChildStarted": return n = this.under(), this.tools++, n;
			case "ToolReturned":
			case "ChildStopped": return this.toolEnded();
			case "ToolFailed": return t.class === "unknown" && this.asked.add(t.call), this.toolEnded();
			case "EffectChecked": return t.happened !== "unknown" && this.asked.delete(t.call), "tool";
			case "ContractChecked": return "tool";
			case "ApprovalAsked": return n = this.under(), this.asked.add(t.call), n;
			case "ApprovalDecided":
			case "EffectResolved": return this.asked.delete(t.call), "human";
			case "LimitReached": return n = this.under(), this.paused = !0, n;
			case "LimitsExtended": return this.paused = !1, "human";
		}
		return this.under();
	}
};
// src/core/screen.ts
function t(e) {
	let t = [];
	return e.runs.forEach((r, i) => n(r, i, e.header.started ?? 0, t)), t.sort((e, t) => e.at - t.at);
}
function n(t, n, r, i) {
	let a = new e(), o = 0, s = 0;
	for (let e of t.events) {
		let c = e.t - r, l = a.apply(e);
		if (e.k === "ModelCallStarted" && (o = e.s), e.k === "ModelReplied") {
			for (; s < t.deltas.length && t.deltas[s].seq < o;) s++;
			for (; s < t.deltas.length && t.deltas[s].seq === o; s++) {
				let e = t.deltas[s];
				i.push({
					at: Math.min(e.t, c),
					run: n,
					seq: o,
					offset: e.offset,
					block: e.block,
					channel: e.channel,
					text: e.text,
					wait: "model"
				});
			}
		}
		i.push({
			at: c,
			run: n,
			seq: e.s,
			offset: 0,
			event: e,
			block: 0,
			channel: "",
			text: "",
			wait: l
		});
	}
}
var r = class {
	blocks = [];
	tools = /* @__PURE__ */ new Map();
	apply(e, t) {
		t > 0 && this.blocks.push({
			kind: "wait",
			run: e.run,
			seq: e.seq,
			cause: e.wait,
			cut: t
		}), e.offset > 0 ? this.piece(e) : this.event(e, e.event.k, e.event.b);
	}
	piece(e) {
		for (let t = this.blocks.length - 1; t >= 0 && t >= this.blocks.length - 16; t--) {
			let n = this.blocks[t];
			if (n.open && n.run === e.run && n.block === e.block) {
				this.blocks[t] = n.kind === "call" ? {
					...n,
					args: (n.args ?? "") + e.text
				} : {
					...n,
					text: (n.text ?? "") + e.text
				};
				return;
			}
		}
		let t = {
			kind: e.channel,
			run: e.run,
			seq: e.seq,
			text: e.text,
			open: !0,
			block: e.block
		};
		e.channel === "arguments" && Object.assign(t, {
			kind: "call",
			text: "",
			args: e.text
		}), e.channel === "thought" && (t.folded = !0), this.blocks.push(t);
	}
	event(e, t, n) {
		let r = (t) => this.blocks.push({
			run: e.run,
			seq: e.seq,
			...t
		}), s = (e) => r({
			kind: "note",
			text: e
		}), c = this.tools.get(`${e.run}/${n.call}`) ?? n.call;
		switch (t) {
			case "RunStarted":
				r({
					kind: "user",
					text: i(n.input)
				});
				return;
			case "MessageTaken":
				r({
					kind: "user",
					text: i(n.blocks)
				});
				return;
			case "ModelReplied": return this.replied(e, n);
			case "ModelFailed": return this.drop(e.run), s(`model failed (${n.class}): ${n.message ?? ""}`);
			case "ToolReturned":
				r({
					kind: "result",
					tool: c,
					text: n.text
				});
				return;
			case "ToolFailed":
				r({
					kind: "result",
					tool: c,
					text: a(n),
					failed: !0
				});
				return;
			case "CallRefused":
				r({
					kind: "result",
					tool: c,
					text: n.message,
					failed: !0
				});
				return;
			case "ChildStopped":
				r({
					kind: "result",
					tool: c,
					text: n.text,
					failed: n.error
				});
				return;
			case "ApprovalAsked": return s(`${c} waits for an approval`);
			case "ApprovalDecided": return s(`${c}: ${n.decision} by ${n.by ?? ""}`);
			case "EffectResolved": return s(`${c}: ${o(n)}`);
			case "LimitReached": return s(`limit reached: ${n.limit}`);
			case "LimitsExtended": return s(`limits extended by ${n.by ?? ""}`);
			case "Nudged": return s(`told the model: ${n.text}`);
			case "CancelRequested": return s(`cancelled by ${n.by ?? ""}`);
			case "Compacted": return s("the transcript was shortened");
			case "ChildStarted": return s(`${n.agent ?? ""} runs as ${n.run}`);
			case "ContractChecked":
				n.ok || s(`not done: missing ${(n.missing ?? []).join("; ")}`);
				return;
			case "RunStopped":
				r({
					kind: "stop",
					text: n.stop + (n.limit ? ` (${n.limit})` : "") + (n.message ? `: ${n.message}` : "")
				});
				return;
		}
	}
	replied(e, t) {
		this.drop(e.run);
		let n = 0;
		(t.blocks ?? []).forEach((r, i) => {
			let a = {
				run: e.run,
				seq: e.seq,
				block: i
			};
			r.k === "thought" && r.text ? this.blocks.push({
				...a,
				kind: "thought",
				text: r.text,
				folded: !0
			}) : r.k === "text" && r.text ? this.blocks.push({
				...a,
				kind: "text",
				text: r.text
			}) : r.k === "call" && (this.blocks.push({
				...a,
				kind: "call",
				tool: r.name,
				args: r.args
			}), this.tools.set(`${e.run}/c${t.call}.${++n}`, r.name ?? ""));
		});
	}
	drop(e) {
		this.blocks = this.blocks.filter((t) => !t.open || t.run !== e);
	}
};
function i(e) {
	return (e ?? []).flatMap((e) => e.text ? [e.text] : e.media ? [`(${e.media.mime} ${e.media.name ?? ""})`] : []).join("\n");
}
function a(e) {
	let t = e.message || "the tool failed";
	return (e.class === "unknown" ? "Outcome unknown: " : e.cause === "cancelled" ? "Interrupted: " : "Error: ") + t;
}
function o(e) {
	let t = e.by || "a person", n = e.happened ? `The call did happen (confirmed by ${t}); its result was lost.` : `Error: the call did not happen (confirmed by ${t}).`;
	return e.message ? `${n} ${e.message}` : n;
}
// src/core/player.ts
var s = [
	.25,
	.5,
	1,
	2,
	4,
	8,
	16,
	32,
	64
], c = class {
	items;
	withScreen;
	speed;
	playing;
	shown = 0;
	at = [];
	cut = [];
	rounds = [];
	pos = 0;
	since;
	screen = new r();
	expanded = !1;
	help = !1;
	typing = !1;
	query = "";
	missed = !1;
	step;
	constructor(e, t, n, r = !0) {
		this.items = e, this.withScreen = r, this.speed = t.speed && t.speed > 0 ? t.speed : 1, this.step = !!t.step, this.playing = !this.step, this.since = n;
		let i = t.max_wait ? t.max_wait : 2e6, a = 0, o = e[0]?.at ?? 0;
		e.forEach((e, t) => {
			let n = e.at - o, r = i > 0 && n > i ? i : n;
			a += r, this.at.push(a), this.cut.push(n - r), o = e.at, e.event?.k === "ModelCallStarted" && (e.event.b.attempt ?? 0) <= 1 && this.rounds.push(t);
		}), this.tick(n);
	}
	total() {
		return this.at[this.at.length - 1] ?? 0;
	}
	blocks() {
		return this.expanded ? this.screen.blocks.map((e) => e.folded ? {
			...e,
			folded: !1
		} : e) : this.screen.blocks;
	}
	position(e) {
		return this.playing ? Math.min(this.pos + Math.trunc((e - this.since) * this.speed), this.total()) : this.pos;
	}
	until(e) {
		let t = 0, n = this.at.length;
		for (; t < n;) {
			let r = t + n >> 1;
			this.at[r] > e ? n = r : t = r + 1;
		}
		return t;
	}
	roundsBefore(e) {
		let t = 0, n = this.rounds.length;
		for (; t < n;) {
			let r = t + n >> 1;
			this.rounds[r] < e ? t = r + 1 : n = r;
		}
		return t;
	}
	tick(e) {
		this.pos = this.position(e), this.since = e;
		let t = this.until(this.pos);
		!this.playing && this.shown > 0 && this.shown <= t && this.shown < this.at.length && this.at[this.shown - 1] === this.pos && (t = this.shown), this.upto(t), this.playing && this.shown === this.items.length && (this.playing = !1);
	}
	upto(e) {
		if (e < this.shown && (this.screen = new r(), this.withScreen && (this.shown = 0)), this.withScreen) for (; this.shown < e; this.shown++) this.screen.apply(this.items[this.shown], this.cut[this.shown]);
		this.shown = e;
	}
	next(e) {
		return !this.playing || this.shown >= this.items.length ? null : e + Math.max((this.at[this.shown] - this.position(e)) / this.speed, 0);
	}
	key(e, t) {
		if (this.tick(e), this.typing) return this.typed(t);
		switch (t) {
			case "space":
			case " ": return this.step ? this.event(1) : this.playing ? this.playing = !1 : (this.shown === this.items.length && this.seek(0), this.playing = !0), !0;
			case "right": return this.event(1);
			case "left": return this.event(-1);
			case "]": return this.round(1);
			case "[": return this.round(-1);
			case ".": return this.faster(1);
			case ",": return this.faster(-1);
			case "/": return this.typing = !0, this.query = "", this.missed = !1, !0;
			case "n": return this.find(this.shown, 1);
			case "N": return this.find(this.shown - 2, -1);
			case "e": return this.expanded = !this.expanded, !0;
			case "?": return this.help = !this.help, !0;
			case "escape": return this.help = this.missed = !1, this.query = "", !0;
		}
		return /^[0-9]$/.test(t) ? (this.seek(Math.trunc(this.total() * Number(t) / 10)), !0) : !1;
	}
	typed(e) {
		if (e === "enter") return this.typing = !1, this.find(this.shown, 1);
		if (e === "escape") this.typing = !1, this.query = "";
		else if (e === "backspace") this.query = [...this.query].slice(0, -1).join("");
		else if (e === "space") this.query += " ";
		else if ([...e].length === 1) this.query += e;
		else return !1;
		return !0;
	}
	seek(e) {
		this.pos = Math.max(Math.min(e, this.total()), 0), this.upto(this.until(this.pos));
	}
	jump(e) {
		this.playing = !1, this.pos = this.at[e], this.upto(e + 1);
	}
	event(e) {
		this.playing = !1;
		for (let t = this.shown - 1 + e; t >= 0 && t < this.items.length; t += e) if (!(this.items[t].offset > 0)) {
			this.jump(t);
			break;
		}
		return !0;
	}
	round(e) {
		let t = this.shown - 1, n = e > 0 ? this.rounds.find((e) => e > t) : this.rounds.findLast((e) => e < t);
		return n === void 0 ? this.items.length && this.jump(e > 0 ? this.items.length - 1 : 0) : this.jump(n), !0;
	}
	faster(e) {
		let t = 0;
		for (; t < s.length - 1 && s[t] < this.speed;) t++;
		return this.speed = s[Math.max(Math.min(t + e, s.length - 1), 0)], !0;
	}
	find(e, t) {
		let n = this.query.toLowerCase();
		if (!n) return !0;
		for (let r = e; r >= 0 && r < this.items.length; r += t) {
			let e = this.items[r].event;
			if (e && (e.k + " " + JSON.stringify(e.b)).toLowerCase().includes(n)) return this.missed = !1, this.jump(r), !0;
		}
		return this.missed = !0, !0;
	}
	view() {
		let e = {
			pos: this.pos,
			total: this.total(),
			real: this.items[this.shown - 1]?.at ?? 0,
			shown: this.shown,
			items: this.items.length,
			event: 0,
			round: this.roundsBefore(this.shown),
			playing: this.playing,
			speed: this.speed
		};
		for (let t = this.shown - 1; t >= 0; t--) if (!(this.items[t].offset > 0)) {
			e.event = this.items[t].seq;
			break;
		}
		let t = this.cut[this.shown] ?? 0;
		return t > 0 && (e.wait = {
			cause: this.items[this.shown].wait,
			cut: t
		}), this.expanded && (e.expanded = !0), this.help && (e.help = !0), this.typing && (e.typing = !0), this.query && (e.query = this.query), this.missed && (e.missed = !0), e;
	}
	marks() {
		let e = [];
		return this.items.forEach((t, n) => {
			let r = this.at[n];
			this.cut[n] > 0 && e.push({
				at: r,
				kind: "wait",
				seq: t.seq,
				cut: this.cut[n],
				why: t.wait
			});
			let i = t.event?.k;
			i === "ModelCallStarted" ? (t.event.b.attempt ?? 0) <= 1 && e.push({
				at: r,
				kind: "round",
				seq: t.seq
			}) : i === "ToolStarted" || i === "ChildStarted" ? e.push({
				at: r,
				kind: "tool",
				seq: t.seq
			}) : i === "ApprovalAsked" || i === "ApprovalDecided" ? e.push({
				at: r,
				kind: "approval",
				seq: t.seq
			}) : i === "RunStopped" && e.push({
				at: r,
				kind: "stop",
				seq: t.seq
			});
		}), e;
	}
};
// src/core/zip.ts
async function l(e) {
	let t = new DataView(e.buffer, e.byteOffset, e.byteLength), n = e.length - 22;
	for (; n >= 0 && t.getUint32(n, !0) !== 101010256;) n--;
	if (n < 0) throw Error("the zip has no directory: it was cut off");
	let r = t.getUint16(n + 10, !0), i = t.getUint32(n + 16, !0), a = [], o = /* @__PURE__ */ new Map();
	for (let n = 0; n < r; n++) {
		if (t.getUint32(i, !0) !== 33639248) throw Error("the directory of the zip makes no sense");
		let n = t.getUint16(i + 10, !0), r = t.getUint32(i + 20, !0), s = t.getUint16(i + 28, !0), c = t.getUint32(i + 42, !0), l = new TextDecoder().decode(e.subarray(i + 46, i + 46 + s));
		if (i += 46 + s + t.getUint16(i + 30, !0) + t.getUint16(i + 32, !0), !l.startsWith("lines/") && !l.startsWith("artifacts/")) continue;
		let d = c + 30 + t.getUint16(c + 26, !0) + t.getUint16(c + 28, !0), f = e.subarray(d, d + r), p = n === 0 ? f : await u(f);
		l.startsWith("lines/") ? a.push(p) : o.set(l.slice(10).replace("-", ":"), new TextDecoder().decode(p));
	}
	let s = new Uint8Array(a.reduce((e, t) => e + t.length, 0)), c = 0;
	for (let e of a) s.set(e, c), c += e.length;
	return {
		lines: s,
		artifacts: o
	};
}
async function u(e) {
	let t = new Blob([e]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Uint8Array(await new Response(t).arrayBuffer());
}
// src/core/read.ts
var d = class extends Error {}, f = 1, p = 12;
async function m(e, t = {}) {
	let n = e[0] === 80 && e[1] === 75 ? await l(e) : null, r = n?.lines ?? e, i = {
		header: {},
		runs: [],
		footer: null,
		lines: 0,
		faults: {
			cutOff: !1,
			newer: !1,
			broken: null,
			missing: []
		}
	}, a = n?.artifacts ?? /* @__PURE__ */ new Map(), o = new TextDecoder(), s = [], c = t.check && globalThis.crypto?.subtle ? new y() : null, u = 0;
	for (let e = 0; e < r.length; u++) {
		let n = r.indexOf(10, e);
		n < 0 && (n = r.length);
		let l = r.subarray(e, n);
		if (e = n + 1, l.length === 0) continue;
		let p;
		try {
			p = JSON.parse(o.decode(l));
		} catch {
			if (u === 0) throw new d("the first line is no JSON");
			if (e >= r.length) break;
			throw new d(`line ${u} is no JSON`);
		}
		if (u === 0) {
			if (p.k !== "ronda") throw new d("the first line is no header");
			if (i.header = p.b ?? {}, p.reader > f) return i.faults.newer = !0, i;
			i.runs.push({
				run: i.header.run,
				agent: i.header.agent,
				parent: i.header.parent,
				events: [],
				deltas: []
			}), s.push(/* @__PURE__ */ new Map());
		}
		c && i.faults.broken === null && !await c.line(l, p) && (i.faults.broken = u), h(i, p, a, s), u === 499 && t.begun?.(i), u % 500 == 499 && await t.pause?.();
	}
	return i.lines = u, i.faults.cutOff = !i.footer, i;
}
function h(e, t, n, r) {
	let i = t.r ?? 0;
	switch (t.k) {
		case "ronda":
		case "clock":
		case "check":
		case "tape": return;
		case "run":
			e.runs[i] = {
				...t.b,
				events: [],
				deltas: []
			}, r[i] = /* @__PURE__ */ new Map();
			return;
		case "artifact":
			n.set(t.ref, typeof t.text == "string" ? t.text : "");
			return;
		case "end":
			e.footer = t.b;
			return;
		case "delta": {
			let n = e.runs[i];
			if (!n) return;
			let a = t.e ?? t.t, o = t.o ?? 1, s = Number(String(t.b).slice(1)), c = `${t.q}.${t.b}`, l = r[i], u = l.get(c) ?? "";
			for (let [e, r] of t.d) a += e, u += r, n.deltas.push({
				seq: t.q,
				offset: o++,
				block: s,
				channel: t.c,
				text: r,
				t: a
			});
			l.set(c, u);
			return;
		}
	}
	if (!/^[A-Z]/.test(t.k)) return;
	let a = e.runs[i];
	if (!a) return;
	let o = t.b ?? {};
	t.refs && (o = _(o, (e) => n.get(e), r[i], g(a), e.faults.missing)), a.events.push({
		s: t.q,
		t: (e.header.started ?? 0) + (t.e ?? t.t),
		k: t.k,
		b: o
	});
}
function g(e) {
	for (let t = e.events.length - 1; t >= 0; t--) if (e.events[t].k === "ModelCallStarted") return e.events[t].s;
	return 0;
}
function _(e, t, n, r, i) {
	if (Array.isArray(e)) return e.map((e) => _(e, t, n, r, i));
	if (typeof e != "object" || !e) return e;
	if (typeof e.$delta == "number") return n.get(`${r}.b${e.$delta}`) ?? "";
	if (typeof e.$sum == "number") return "";
	if (typeof e.$ref == "string") {
		let n = t(e.$ref);
		return n === void 0 ? (i.push(e.$ref), e.preview ?? "") : e.mime === "application/json" ? v(n) : n;
	}
	let a = {};
	for (let o in e) a[o] = _(e[o], t, n, r, i);
	return a;
}
function v(e) {
	try {
		return JSON.parse(e);
	} catch {
		return e;
	}
}
var y = class {
	sum = /* @__PURE__ */ new Uint8Array(32);
	async line(e, t) {
		let n = e.subarray(0, e.length - p), r = new Uint8Array(32 + n.length);
		return r.set(this.sum), r.set(n, 32), this.sum = new Uint8Array(await crypto.subtle.digest("SHA-256", r)), b(this.sum.subarray(0, 2)) === t.h;
	}
}, b = (e) => Array.from(e, (e) => e.toString(16).padStart(2, "0")).join("");
// src/core/words.ts
function x(e) {
	let t = e / 1e6;
	return t < .0995 ? `${Math.round(e / 1e3)} ms` : t < 59.95 ? `${t.toFixed(1)} s` : t < 3600 ? `${Math.floor(t / 60)} min ${Math.round(t % 60)} s` : t < 86400 ? `${Math.floor(t / 3600)} h ${Math.floor(t % 3600 / 60)} min` : `${Math.floor(t / 86400)} d ${Math.floor(t % 86400 / 3600)} h`;
}
function S(e) {
	let t = Math.max(0, e) / 1e6, n = Math.floor(t / 60);
	return n >= 60 ? `${Math.floor(n / 60)}:${C(n % 60)}:${C(Math.floor(t % 60))}` : `${n}:${C(Math.floor(t % 60))}.${Math.floor(t * 10 % 10)}`;
}
var C = (e) => String(e).padStart(2, "0"), w = "\n:host { display: flex; flex-direction: column; height: 26rem; min-width: 0; border: 1px solid light-dark(#d8d5cb, #333b45); border-radius: 10px; overflow: hidden; color-scheme: light dark;\n  background: light-dark(#fff, #1b2026); color: light-dark(#1c1f24, #e7e9ec); font: 14px/1.5 system-ui, -apple-system, 'Segoe UI', sans-serif; --muted: light-dark(#59606b, #a2aab5); --accent: light-dark(#0b5d53, #5fcdb9); }\n:host([hidden]), [hidden] { display: none !important; }\n* { box-sizing: border-box; }\nheader { display: flex; flex-wrap: wrap; gap: 0 .6rem; padding: .5rem .8rem; border-bottom: 1px solid light-dark(#eeece5, #2a313a); align-items: center; min-height: 2.3rem; }\n.agent, .model { color: var(--muted); font-size: .9em; overflow-wrap: anywhere; }\n.tag { border: 1px solid; border-radius: 4px; padding: 0 .35em; font-size: .75rem; font-weight: 600; color: light-dark(#67409b, #caabff); }\n.list { flex: 1; overflow: auto; min-height: 0; }\n.block { padding: .35rem .8rem; border-left: 4px solid transparent; overflow-wrap: anywhere; }\n.child { margin-left: 1.2rem; }\n.label { color: var(--muted); font-size: .8em; } .label b { color: light-dark(#1c1f24, #e7e9ec); font: 600 1.05em ui-monospace, 'DejaVu Sans Mono', monospace; }\n.text { white-space: pre-wrap; }\n.call .text, .result .text { font: .85em/1.5 ui-monospace, 'DejaVu Sans Mono', monospace; color: var(--muted); display: -webkit-box; -webkit-line-clamp: 6; -webkit-box-orient: vertical; overflow: hidden; }\n.user { border-left-color: var(--accent); background: color-mix(in srgb, var(--accent) 6%, transparent); }\n.call { border-left-color: light-dark(#1b58a8, #8cbcff); } .result { border-left-color: light-dark(#a9c0df, #44597a); }\n.failed { border-left-color: light-dark(#a3231c, #ff9d94); } .note.block { color: light-dark(#7d4b00, #f2b84b); } .stop { font-weight: 600; border-left-color: light-dark(#17653a, #74d6a0); }\n.thought .text { font-style: italic; color: var(--muted); } .folded { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }\n.wait { text-align: center; font-size: .85em; border: 0; background: repeating-linear-gradient(-45deg, transparent 0 6px, color-mix(in srgb, var(--muted) 20%, transparent) 6px 8px); }\np.note { margin: 0; padding: .25rem .8rem; font-size: .85em; color: var(--muted); border-top: 1px solid light-dark(#eeece5, #2a313a); }\n.controls { display: flex; align-items: center; gap: .4rem; padding: .4rem .6rem; border-top: 1px solid light-dark(#eeece5, #2a313a); flex-wrap: wrap; }\nbutton { font: inherit; min-width: 1.9rem; min-height: 1.9rem; border: 1px solid light-dark(#85837b, #6c7683); border-radius: 6px; background: none; color: inherit; cursor: pointer; padding: 0 .4rem; }\n.play { background: var(--accent); border-color: var(--accent); color: light-dark(#fff, #0c1513); }\n.fold { border: 0; min-height: 1.5rem; min-width: 1.5rem; padding: 0; color: var(--muted); }\n.track { position: relative; flex: 1 1 6rem; height: 28px; } canvas { width: 100%; height: 28px; display: block; } input { position: absolute; inset: 0; width: 100%; height: 28px; margin: 0; opacity: 0; cursor: pointer; }\n.track:has(:focus-visible), :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; border-radius: 4px; }\n.time, .speed { color: var(--muted); font: .82em ui-monospace, 'DejaVu Sans Mono', monospace; white-space: nowrap; }\n", T = null;
function E() {
	return T || (T = new CSSStyleSheet(), T.replaceSync(w)), T;
}
var D = {
	en: {
		play: "Play",
		pause: "Pause",
		slower: "Slower",
		faster: "Faster",
		position: "Position",
		transcript: "Transcript",
		unfold: "Thought",
		loading: "Loading…",
		failed: "The recording could not be loaded:",
		bad: "This is no recording:",
		newer: "A newer version of ronda wrote this recording.",
		cutOff: "The recording was cut off.",
		broken: "Its hash chain is broken: lines were changed.",
		missing: "Some of its artifacts are missing.",
		scripted: "scripted",
		cut: "not played",
		none: "not found",
		keys: "Space play, pause · ← → event · [ ] round · , . slower, faster · 0–9 seek · / search, n N next, before · e thoughts · ? these keys",
		kinds: {
			user: "said",
			thought: "thought",
			text: "text",
			call: "calls",
			result: "result",
			note: "",
			stop: "stopped"
		},
		waits: {
			model: "the model",
			tool: "a tool",
			human: "a person",
			rate_limit: "a rate limit",
			back_off: "back-off",
			queue: "nobody drove the run"
		}
	},
	es: {
		play: "Reproducir",
		pause: "Pausa",
		slower: "Más lento",
		faster: "Más rápido",
		position: "Posición",
		transcript: "Transcripción",
		unfold: "Pensamiento",
		loading: "Cargando…",
		failed: "No se pudo cargar la grabación:",
		bad: "Esto no es una grabación:",
		newer: "La escribió una versión más nueva de ronda.",
		cutOff: "La grabación está cortada.",
		broken: "Su cadena está rota: se cambiaron líneas.",
		missing: "Le faltan artefactos.",
		scripted: "con guion",
		cut: "sin reproducir",
		none: "no está",
		keys: "Espacio reproducir, pausa · ← → evento · [ ] ronda · , . más lento, más rápido · 0–9 ir a · / buscar, n N siguiente, anterior · e pensamientos · ? estas teclas",
		kinds: {
			user: "dijo",
			thought: "pensó",
			text: "texto",
			call: "llama",
			result: "resultado",
			note: "",
			stop: "terminada"
		},
		waits: {
			model: "el modelo",
			tool: "una herramienta",
			human: "una persona",
			rate_limit: "un límite de frecuencia",
			back_off: "reintento",
			queue: "nadie la llevaba"
		}
	}
}, O = () => Math.round(performance.now() * 1e3), k = {
	" ": "space",
	ArrowLeft: "left",
	ArrowRight: "right",
	Enter: "enter",
	Escape: "escape",
	Backspace: "backspace"
}, A = 100;
function j(e, t = "", n = "") {
	let r = document.createElement(e);
	return t && (r.className = t), n && (r.textContent = n), r;
}
var M = class extends HTMLElement {
	static observedAttributes = ["src", "lang"];
	root = this.attachShadow({ mode: "open" });
	player = null;
	rec = null;
	marks = [];
	frame = 0;
	fetching = null;
	drawn = /* @__PURE__ */ new Map();
	open = /* @__PURE__ */ new Set();
	w = D.en;
	list = j("div", "list");
	line = j("input");
	canvas = j("canvas");
	play = j("button", "play");
	time = j("span", "time");
	speed = j("span", "speed");
	note = j("p", "note");
	head = j("header");
	controls = j("div", "controls");
	ended = !1;
	resized = null;
	constructor() {
		super(), this.root.adoptedStyleSheets = [E()], this.line.type = "range", this.line.min = "0", this.line.addEventListener("input", () => this.move((e) => (e.playing = !1, e.seek(Number(this.line.value))))), this.play.addEventListener("click", () => this.press("space"));
		let e = j("div", "track");
		e.append(this.canvas, this.line), this.controls.append(this.play, e, this.time, this.button("slower", "−", ","), this.speed, this.button("faster", "+", ".")), this.note.setAttribute("role", "status"), this.list.tabIndex = 0, this.list.setAttribute("role", "region"), this.root.append(this.head, this.list, this.note, this.controls), this.addEventListener("keydown", (e) => this.key(e));
	}
	connectedCallback() {
		this.speak(), this.resized = new ResizeObserver(() => this.drawLine()), this.resized.observe(this.canvas), !this.player && this.getAttribute("src") ? this.load() : this.run();
	}
	disconnectedCallback() {
		cancelAnimationFrame(this.frame), this.fetching?.abort(), this.resized?.disconnect();
	}
	attributeChangedCallback(e, t, n) {
		t !== n && this.isConnected && (e === "src" ? this.load() : this.speak());
	}
	button(e, t, n) {
		let r = j("button", "", t);
		return r.dataset.word = e, r.addEventListener("click", () => this.press(n)), r;
	}
	speak() {
		this.w = (this.lang || document.documentElement.lang || "").startsWith("es") ? D.es : D.en, this.list.setAttribute("aria-label", this.rec ? `${this.w.transcript}: ${this.rec.header.title ?? this.rec.header.run}` : this.w.transcript), this.line.setAttribute("aria-label", this.w.position);
		for (let e of this.root.querySelectorAll("[data-word]")) e.setAttribute("aria-label", this.w[e.dataset.word]);
		this.drawn.clear(), this.list.replaceChildren(), this.show();
	}
	async load() {
		this.fetching?.abort();
		let e = this.fetching = new AbortController();
		this.player = this.rec = null, this.say(this.w.loading);
		try {
			let t = await fetch(this.getAttribute("src") ?? "", {
				signal: e.signal,
				credentials: "same-origin"
			});
			if (!t.ok) throw Error(`${t.status} ${t.statusText}`);
			let n = await m(new Uint8Array(await t.arrayBuffer()), {
				check: !0,
				pause: () => new Promise((e) => setTimeout(e))
			});
			e.signal.aborted || this.begin(n);
		} catch (t) {
			e.signal.aborted || this.say(`${t instanceof d ? this.w.bad : this.w.failed} ${t.message}`);
		}
	}
	begin(e) {
		if (this.rec = e, this.say(this.faults(e.faults)), e.faults.newer) return;
		let n = this.getAttribute("max-wait"), r = {
			speed: Number(this.getAttribute("speed")) || 1,
			max_wait: n === "none" ? -1 : n ? Number(n) * 1e6 : 0
		};
		this.player = new c(t(e), r, O()), this.marks = this.player.marks();
		let i = matchMedia("(prefers-reduced-motion: reduce)").matches;
		(!this.hasAttribute("autoplay") || i) && (this.player.playing = !1), this.line.max = String(Math.max(1, this.player.total())), this.line.step = String(Math.max(1, Math.round(this.player.total() / 1e3))), this.heading(e), this.drawn.clear(), this.list.replaceChildren(), this.list.setAttribute("aria-label", `${this.w.transcript}: ${e.header.title ?? e.header.run}`), this.dispatchEvent(new CustomEvent("ready", { detail: e.header })), this.show(), this.run();
	}
	heading(e) {
		let t = e.header.models?.[0] ?? "";
		this.head.replaceChildren(j("strong", "", e.header.title ?? e.header.run), j("span", "agent", e.header.agent ?? "")), t.startsWith("scripted") && this.head.append(j("span", "tag", this.w.scripted)), this.head.append(j("span", "model", t.replace(/^scripted\//, "")));
	}
	faults(e) {
		return e.newer ? this.w.newer : [
			e.cutOff && this.w.cutOff,
			e.broken !== null && this.w.broken,
			e.missing.length > 0 && this.w.missing
		].filter(Boolean).join(" ");
	}
	say(e) {
		this.note.textContent = e, this.note.hidden = !e;
	}
	press(e) {
		if (!this.player) return !1;
		let t = this.player.key(O(), e);
		return t && this.show(), this.run(), t;
	}
	move(e) {
		this.player && (e(this.player), this.show(), this.run());
	}
	key(e) {
		if (!this.player || e.ctrlKey || e.metaKey || e.altKey) return;
		let t = e.composedPath()[0];
		if (!this.player.view().typing && t.tagName === "BUTTON" && (e.key === " " || e.key === "Enter") || t === this.line && e.key.startsWith("Arrow")) return;
		let n = k[e.key] ?? (e.key.length === 1 ? e.key : "");
		n && this.press(n) && e.preventDefault();
	}
	run() {
		cancelAnimationFrame(this.frame), this.player?.playing && this.isConnected && (this.frame = requestAnimationFrame(() => {
			this.player.tick(O()), this.show(), this.run();
		}));
	}
	show() {
		let e = this.player;
		if (this.controls.hidden = !e, !e) return;
		let t = e.view(), n = e.blocks(), r = Math.max(0, n.length - A);
		for (let [e, t] of this.drawn) e >= r && e < n.length || (t.el.remove(), this.drawn.delete(e));
		for (let e = r; e < n.length; e++) {
			let r = n[e], i = this.drawn.get(e);
			if (i?.block === r && i.expanded === !!t.expanded) continue;
			let a = this.block(r);
			i ? i.el.replaceWith(a) : this.list.append(a), this.drawn.set(e, {
				block: r,
				expanded: !!t.expanded,
				el: a
			});
		}
		this.list.scrollTop = this.list.scrollHeight, this.play.textContent = t.playing ? "❚❚" : "▶", this.play.setAttribute("aria-label", t.playing ? this.w.pause : this.w.play), this.time.textContent = `${S(t.pos)} / ${S(t.total)}`, this.speed.textContent = `${t.speed}×`, this.line.value = String(t.pos), this.line.setAttribute("aria-valuetext", `${S(t.pos)} / ${S(t.total)}`);
		let i = t.help ? this.w.keys : t.typing ? `/${t.query ?? ""}▏` : t.missed ? `${t.query}: ${this.w.none}` : t.wait && t.playing ? `${this.w.waits[t.wait.cause] ?? t.wait.cause}: ${x(t.wait.cut)} ${this.w.cut}` : this.faults(this.rec.faults);
		this.note.textContent !== i && this.say(i), this.drawLine();
		let a = t.shown === t.items;
		a && !this.ended && this.dispatchEvent(new CustomEvent("ended")), this.ended = a;
	}
	block(e) {
		let t = j("div", `block ${e.kind}${e.failed ? " failed" : ""}${e.run ? " child" : ""}`);
		if (e.kind === "wait") return t.textContent = `${this.w.waits[e.cause] ?? e.cause}: ${x(e.cut ?? 0)} ${this.w.cut}`, t;
		let n = j("span", "label", this.w.kinds[e.kind] ?? "");
		e.tool && n.append(" ", j("b", "", e.tool)), t.append(n);
		let r = e.kind === "call" ? e.args ?? "" : e.text ?? "", i = j("div", "text", r.length > 4e3 ? r.slice(0, 4e3) + "…" : r);
		if (e.kind === "thought") {
			let r = e.folded && !this.open.has(e), a = j("button", "fold", r ? "▸" : "▾");
			a.setAttribute("aria-label", this.w.unfold), a.setAttribute("aria-expanded", String(!r)), a.addEventListener("click", () => {
				this.open.has(e) ? this.open.delete(e) : this.open.add(e), t.replaceWith(this.drawn.get([...this.drawn].find(([, t]) => t.block === e)?.[0] ?? -1).el = this.block(e));
			}), n.append(a), i.classList.toggle("folded", r);
		}
		return t.append(i), t;
	}
	drawLine() {
		let e = this.canvas.getContext("2d"), t = this.canvas.clientWidth;
		if (!e || !t || !this.player) return;
		let n = devicePixelRatio || 1;
		this.canvas.width !== Math.round(t * n) && (this.canvas.width = Math.round(t * n), this.canvas.height = 28 * n), e.setTransform(n, 0, 0, n, 0, 0), e.clearRect(0, 0, t, 28);
		let r = this.player.total() || 1, i = (e) => Math.round(e / r * (t - 3)), a = getComputedStyle(this.time).color, o = getComputedStyle(this.play).backgroundColor;
		e.fillStyle = a, e.globalAlpha = .3, e.fillRect(0, 13, t, 3), e.globalAlpha = 1, e.fillStyle = o, e.fillRect(0, 13, i(this.player.view().pos), 3);
		let s = -1;
		for (let t of this.marks) {
			let n = i(t.at);
			if (t.kind === "wait") {
				e.fillStyle = a, e.globalAlpha = .5;
				for (let r = i(Math.max(0, t.at - 2e6)); r < n; r += 4) e.fillRect(r, 6, 1, 17);
				e.globalAlpha = 1;
				continue;
			}
			if (n === s && t.kind !== "stop" && t.kind !== "approval") continue;
			s = n, e.fillStyle = t.kind === "tool" ? o : a;
			let [r, c] = {
				round: [9, 10],
				tool: [11, 7],
				approval: [4, 20],
				stop: [4, 20]
			}[t.kind];
			e.fillRect(n, r, t.kind === "round" ? 1 : 2, c);
		}
	}
};
customElements.get("ronda-replay") || customElements.define("ronda-replay", M);
export { M as RondaReplay };
