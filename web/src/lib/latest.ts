/**
 * Runs one request at a time, and then the latest one that came in meanwhile. What came in between is dropped, so that
 * a slider never queues answers that nobody waits for.
 */
export class Latest {
  #running = false;
  #waiting: (() => Promise<void>) | null = null;

  run(job: () => Promise<void>): void {
    this.#waiting = job;
    if (!this.#running) void this.#drain();
  }

  async #drain(): Promise<void> {
    this.#running = true;
    while (this.#waiting) {
      const job = this.#waiting;
      this.#waiting = null;
      await job();
    }
    this.#running = false;
  }
}
