import { bench } from 'vitest'
import { sum } from './sum.js'

bench('sum', () => {
  sum()
})
