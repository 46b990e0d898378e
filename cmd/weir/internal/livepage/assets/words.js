// Numbers, times and keys as people read them.

const plain = new Intl.NumberFormat('en-GB')
const short = new Intl.NumberFormat('en-GB', { maximumSignificantDigits: 3, notation: 'compact' })

export const count = n => plain.format(n)

/** rate has three digits: 0, 0.13, 12.5, 3.2K. */
export const rate = n => n === 0 ? '0' : n < 0.01 ? '<\u00a00.01' : short.format(n)

export function share(part, whole) {
  if (!(whole > 0) || part <= 0) return '0\u00a0%'
  const percent = 100 * part / whole
  return percent < 0.1 ? '<\u00a00.1\u00a0%' : percent > 99.9 && part < whole ? '>\u00a099.9\u00a0%' : `${percent < 10 ? percent.toFixed(1) : Math.round(percent)}\u00a0%`
}

const steps = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]

/** lasting writes seconds with one or two units: 3 d 4 h, 12 min, 1.5 s, 80 µs. */
export function lasting(seconds) {
  if (seconds < 0) return '0\u00a0s'
  if (seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(2))}\u00a0µs`
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(2))}\u00a0ms`
  if (seconds < 10) return `${Number(seconds.toPrecision(2))}\u00a0s`
  seconds = Math.round(seconds)
  const at = steps.findIndex(([, size]) => seconds >= size)
  const [unit, size] = steps[at], whole = Math.floor(seconds / size)
  const next = steps[at + 1], rest = next ? Math.floor((seconds - whole * size) / next[1]) : 0
  return rest && whole < 10 ? `${whole}\u00a0${unit} ${rest}\u00a0${next[0]}` : `${whole}\u00a0${unit}`
}

/** clock writes a time of day in UTC, as the log has it, with the date unless it is today's. */
export function clock(seconds) {
  const at = new Date(seconds * 1000).toISOString()
  const [date, time] = [at.slice(0, 10), at.slice(11, 19)]
  return date === new Date().toISOString().slice(0, 10) ? time : `${date} ${time}`
}

// Characters that nobody sees, or that turn the direction of what follows, or that stand for bytes that are not text.
const unseen = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\ufffd]/gu

/** visible writes a key with the characters that nobody sees as their numbers. */
export const visible = text => text.replace(unseen, c => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`)

/** ruleName names the rule of a count, with a mark for a shadow. */
export const ruleName = item => `${visible(item.rule)}${item.shadow ? ' (shadow)' : ''}`

/** whole reports whether text is exactly what the daemon has: bytes that are not UTF-8 arrive as U+FFFD. */
export const whole = text => !text.includes('\ufffd')

/** quoted writes an argument for a shell. */
export function quoted(text) {
  if (/^[\w.:@%+=,/-]+$/.test(text)) return text
  if (!text.match(unseen)) return `'${text.replaceAll("'", `'\\''`)}'`
  const escaped = text.replace(/[\\']/g, '\\$&').replace(unseen, c => {
    const n = c.codePointAt(0).toString(16)
    return n.length > 4 ? `\\U${n.padStart(8, '0')}` : `\\u${n.padStart(4, '0')}`
  })
  return `$'${escaped}'`
}

/** line writes a command with its flags and arguments for a shell. */
export function line(words, flags = [], args = []) {
  const parts = [...words, ...flags.map(quoted)]
  if (args.some(a => a.startsWith('-'))) parts.push('--')
  return [...parts, ...args.map(quoted)].join(' ')
}
