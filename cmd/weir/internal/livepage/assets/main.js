// The live page of a daemon. One stream brings the figures, once a second at most; model.js adds them up, and the panel that is
// open draws them. docs/howto/operate.md#the-live-page describes the page, and docs/reference/api.md the stream.
import { by, put } from './dom.js'
import { follow, show as showToken } from './daemon.js'
import { Model } from './model.js'
import { news, reach } from './ask.js'
import { clock } from './words.js'
import { engineText, showNow } from './now.js'
import { showRules } from './rules.js'
import { showKeys } from './keys.js'
import { showAudit } from './audit.js'
import { beginWhatIf } from './what-if.js'

const panels = { now: showNow, rules: showRules, keys: showKeys, 'what-if': showRules, audit: showAudit }

const model = new Model()

/** open returns the name of the panel in the address. */
function open() {
  const [, name] = location.hash.match(/^#([a-z-]+)/) ?? []
  return name in panels && allowed(name) ? name : 'now'
}

const allowed = name => document.querySelector(`nav a[href="#${name}"]`).dataset.needs !== 'admin' || model.may.has('admin')

function draw() {
  if (!model.now) return
  const name = open()
  for (const link of document.querySelectorAll('nav a')) {
    const to = link.hash.slice(1)
    link.hidden = !allowed(to)
    if (to === name) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== name
  panels[name](model)
}

function link(state, text) {
  by('link').dataset.state = state
  put(by('link'), text)
}

let spoken = ''  // what the page last said of the engine
let lost = false // the page has said that the stream is gone
let shown = false // a token

function got(message) {
  const had = model.now !== null
  model.merge(message)
  by('sign-in').hidden = true
  document.querySelector('main').hidden = false
  reach(model.now.ctl)
  const { engine } = model.now
  link(engine.up ? 'good' : 'bad', engine.up ? 'up' : 'engine away')
  put(by('who'), `${location.host || 'this daemon'}, as ${model.who}`)
  const words = `${engine.kind} ${engine.up}`
  if (lost) news('The figures are back.', 'good')
  lost = false
  if (had && words !== spoken) news(engineText(engine, model.at), engine.up ? 'good' : 'bad')
  spoken = words
  draw()
}

/** signIn asks for a token, and ends when there is one to try. */
function signIn(why) {
  document.querySelector('main').hidden = true
  by('sign-in').hidden = false
  put(by('sign-in-why'), why)
  link('wait', 'no token')
  by('token').focus()
  return new Promise(typed => by('sign-in').addEventListener('submit', event => {
    event.preventDefault()
    showToken(by('token').value.trim())
    shown = true
    by('token').value = ''
    typed()
  }, { once: true }))
}

const pause = seconds => new Promise(over => setTimeout(over, seconds * 1000))

/** run follows the daemon for as long as the page is open. */
async function run() {
  for (let tries = 0; ;) {
    let came = false
    try {
      await follow(message => { came = true; got(message) })
    } catch (error) {
      if (error.status === 401 || error.status === 403) {
        await signIn(shown ? `That token does not do: ${error.message}.` : '')
        continue
      }
      tries = came ? 0 : tries + 1
      if (!lost) news(`No figures since ${clock(Date.now() / 1000)}: ${error.message}. Trying again.`, 'bad')
      lost = true
      link('bad', 'no answer')
    }
    await pause(Math.min(5, 0.5 * 2 ** tries))
  }
}

addEventListener('hashchange', draw)
beginWhatIf()
run()
