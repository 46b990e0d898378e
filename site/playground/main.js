// The page "Try it": three parts, which all ask one program in a worker. What Play shows is in the fragment of the URL.
import { Engine, Stopped } from './engine.js'
import { play } from './play.js'
import { log } from './log.js'
import { rules } from './rules.js'

const id = name => document.getElementById(name)
const mostFragment = 8192 // bytes

// problem shows what an error says, and what to do about it, as text.
function problem(place, error) {
  place.replaceChildren()
  if (!error || error instanceof Stopped) return
  const box = weir.element('div', { className: 'problem' }, weir.element('pre', { textContent: error.message }))
  if (error.hints?.length) box.append(weir.element('ul', {}, ...error.hints.map(hint => weir.element('li', { textContent: hint }))))
  place.append(box)
}

function progress(busy, told) {
  clearTimeout(progress.later)
  if (!busy) {
    id('busy').hidden = true
    return
  }
  const bar = id('progress')
  if (told?.of > 0) Object.assign(bar, { max: told.of, value: told.done })
  else bar.removeAttribute('value')
  id('stage').textContent = told?.stage ?? 'computing'
  if (id('busy').hidden) progress.later = setTimeout(() => { id('busy').hidden = false }, 300)
}

function died(text) {
  id('state').replaceChildren(weir.element('span', { className: 'refused', textContent: `The program cannot run here: ${text} ` }),
    weir.element('span', { textContent: 'It needs a browser with WebAssembly and workers, and a page from a web server: weir playground DIR serves it.' }))
}

// tabs are one stop of the Tab key, and arrows go between them.
function tabs(chosen) {
  const all = Array.from(document.querySelectorAll('[role="tab"]'))
  const choose = (tab, focus) => {
    for (const t of all) {
      const is = t === tab
      t.setAttribute('aria-selected', is)
      t.tabIndex = is ? 0 : -1
      id(t.getAttribute('aria-controls')).hidden = !is
    }
    if (focus) tab.focus()
    chosen(tab.getAttribute('aria-controls'))
  }
  all.forEach((tab, i) => {
    tab.addEventListener('click', () => choose(tab))
    tab.addEventListener('keydown', event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
      if (step) choose(all[(i + step + all.length) % all.length], true)
    })
  })
  return name => { const tab = id(`tab-${name}`); if (tab) choose(tab) }
}

// fragment returns the settings of the URL. A fragment is input like any: what is too long, or unknown, does not count.
function fragment() {
  const text = location.hash.slice(1)
  return text.length > mostFragment ? { settings: new URLSearchParams(), tooLong: true } : { settings: new URLSearchParams(text), tooLong: false }
}

function keep(part, settings) {
  const all = new URLSearchParams({ part })
  for (const [name, value] of settings) all.append(name, value)
  const text = all.toString()
  history.replaceState(null, '', text.length > mostFragment ? location.pathname + location.search : '#' + text)
}

function begin() {
  const engine = new Engine(progress, died)
  engine.ready.then(() => { id('state').textContent = 'Ready. The program runs in this page.' })
  id('stop').addEventListener('click', () => engine.stop())
  let part = 'play'
  const shown = { engine, problem, Stopped, changed: settings => keep(part, settings) }
  const parts = { play: play(shown), log: log(shown), rules: rules(shown) }
  const choose = tabs(name => {
    part = name
    keep(part, parts[name].settings())
    parts[name].show()
  })
  const take = () => {
    const { settings, tooLong } = fragment()
    if (tooLong) id('state').textContent = `The link is longer than ${mostFragment} characters, and does not count.`
    const name = Object.hasOwn(parts, settings.get('part')) ? settings.get('part') : 'play'
    parts[name].take(settings)
    choose(name)
  }
  addEventListener('hashchange', take)
  take()
}

begin()
