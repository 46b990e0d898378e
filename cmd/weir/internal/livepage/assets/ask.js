// The dialog before each change: it shows the line of weir ctl that does the same, and asks once.
import { by, put } from './dom.js'
import { ask } from './daemon.js'
import { line } from './words.js'

/** news says what happened, to eyes and screen readers. */
export function news(text, state = '') {
  const at = by('news')
  at.dataset.state = state
  put(at, text)
}

let where = []

/** reach has later lines name this daemon, by the flag that the daemon has told: --admin ADDR. */
export function reach(flag) {
  const [, name, address] = flag.match(/^(\S+) (.*)$/) ?? []
  where = name ? [name, address] : []
}

/** ctl writes a line of weir ctl. */
export const ctl = (command, flags = [], args = []) => line(['weir', 'ctl', command], [...where, ...flags], args)

/** change asks once, runs the change, and says what came of it. It returns whether it was made. */
export async function change({ title, shown, path, body }) {
  const dialog = by('ask')
  put(by('ask-title'), title)
  put(by('ask-line'), shown)
  dialog.returnValue = ''
  dialog.showModal()
  await new Promise(closed => dialog.addEventListener('close', closed, { once: true }))
  if (dialog.returnValue !== 'run') return false
  try {
    const { before, after, warnings = [] } = await ask(path, body())
    news([`${title}: done. Before: ${state(before)}. After: ${state(after)}.`, ...warnings.map(w => `Warning: ${w}.`)].join(' '), warnings.length ? 'warn' : 'good')
    return true
  } catch (error) {
    news(`${title}: ${error.message}`, 'bad')
    return false
  }
}

function state(value) {
  if (value === null || value === undefined) return 'none'
  if (typeof value !== 'object') return String(value)
  if ('remaining' in value) return `${value.remaining} of ${value.limit} remain`
  return value.limit ? `${value.limit} until ${value.until}` : JSON.stringify(value)
}
