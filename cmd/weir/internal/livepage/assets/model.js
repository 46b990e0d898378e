// What the page knows of the daemon: the sum of the messages of the stream so far.

const points = 180 // of the history: 15 minutes of 5 seconds

const lists = ['busiest', 'refused', 'fullest', 'banned', 'overrides', 'audit']

function push({ admitted, refused }, a, r) {
  admitted.push(a)
  refused.push(r)
  if (admitted.length <= points) return
  admitted.shift()
  refused.shift()
}

export class Model {
  now = null
  at = 0
  may = new Set()
  who = ''
  /** rules have the numbers of each rule, by name. */
  rules = new Map()
  history = { step: 5, from: 0, admitted: [], refused: [], rules: new Map() }
  busiest = []
  refused = []
  fullest = []
  overrides = []
  audit = []

  /** merge takes over a message. The first one of a stream has everything, so nothing of before stays. */
  merge(message) {
    if (message.all) {
      this.rules.clear()
      this.history = { ...message.history, rules: new Map(Object.entries(message.history.rules)) }
      for (const list of lists) this[list] = []
    }
    this.at = message.at
    this.now = message.now
    this.who = message.who ?? this.who
    this.may = new Set(message.may ?? this.may)
    for (const rule of message.rules ?? []) this.rules.set(rule.rule, rule)
    for (const list of lists) if (message[list]) this[list] = message[list]
    if (message.sample) this.#append(message.sample)
  }

  /** append adds a step to the history. Rules without decisions in it are not in the sample. */
  #append({ admitted, refused, rules }) {
    const h = this.history, before = h.admitted.length
    const sample = new Map(Object.entries(rules)) // a rule may have the name of anything that objects have
    for (const name of sample.keys()) if (!h.rules.has(name)) h.rules.set(name, { admitted: Array(before).fill(0), refused: Array(before).fill(0) })
    push(h, admitted, refused)
    for (const [name, of] of h.rules) {
      push(of, ...sample.get(name) ?? [0, 0])
      if (!of.admitted.some(v => v) && !of.refused.some(v => v)) h.rules.delete(name)
    }
    if (before === points) h.from += h.step
  }
}
