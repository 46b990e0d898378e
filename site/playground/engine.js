// The program, as the page sees it: ask returns the answer to a question, or throws what it failed with.

// Failed is an error that the program explains.
export class Failed extends Error {
  constructor({ message, hints, unread }) {
    super(message)
    this.hints = hints ?? []
    this.unread = unread ?? [] // lines of a log that explain it
  }
}

// Stopped is thrown to whoever waits for an answer that nobody wants any more.
export class Stopped extends Error {}

export class Engine {
  // changed(busy, progress) is told when the program begins and ends to compute; died(text), when it cannot begin.
  constructor(changed, died) {
    Object.assign(this, { changed, died, module: null, running: null, waiting: [], ids: 0, ready: null })
    this.begin()
  }

  // begin starts a worker, and loads the program once.
  begin() {
    this.worker = new Worker('worker.js')
    this.ready = new Promise(ready => {
      this.worker.onmessage = ({ data }) => {
        if (data.module) this.module = data.module
        if (data.ready) ready(), this.next()
        if (data.progress && this.running?.id === data.id) this.changed(true, data.progress)
        if (data.answer !== undefined && this.running?.id === data.id) this.finish(data.answer)
        if (data.gone) this.lost(data.gone)
      }
      this.worker.onerror = event => { event.preventDefault?.(); this.lost(event.message || 'The worker cannot start.') }
    })
    this.loaded = false
    this.ready.then(() => { this.loaded = true; this.next() })
    this.worker.postMessage({ start: true, module: this.module })
  }

  // ask asks a question. A later one of the same slot takes its place: it is not worth waiting for both.
  ask(slot, question, file) {
    return new Promise((resolve, reject) => {
      this.waiting = this.waiting.filter(w => w.slot !== slot || (w.reject(new Stopped()), false))
      this.waiting.push({ id: ++this.ids, slot, question, file, resolve, reject })
      if (this.running?.slot === slot && performance.now() - this.running.since > 1000) this.stop(true)
      else this.next()
    })
  }

  next() {
    if (!this.loaded || this.running || this.waiting.length === 0) return
    const next = this.waiting.shift()
    next.since = performance.now()
    this.running = next
    this.worker.postMessage({ id: next.id, question: JSON.stringify(next.question), file: next.file })
    this.changed(true, null)
  }

  finish(answer) {
    const { resolve, reject } = this.running
    this.running = null
    this.changed(false, null)
    const { ok, error } = JSON.parse(answer)
    error ? reject(new Failed(error)) : resolve(ok)
    this.next()
  }

  // stop ends the worker and begins another, with the program that is compiled already.
  stop(keepWaiting) {
    this.worker.terminate()
    this.running?.reject(new Stopped())
    if (!keepWaiting) this.waiting.splice(0).forEach(w => w.reject(new Stopped()))
    this.running = null
    this.changed(false, null)
    this.begin()
  }

  // lost explains the end of a worker. Unless it could not even begin, another takes its place.
  lost(text) {
    if (!this.loaded) {
      this.died(text)
      return
    }
    const { running } = this
    this.running = null
    this.worker.terminate()
    this.changed(false, null)
    running?.reject(new Failed({ message: text, hints: ['a smaller input may do; the program on your machine, weir, has all its memory'] }))
    this.begin()
  }
}
