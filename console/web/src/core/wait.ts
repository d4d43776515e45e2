import type { Event } from './event';

/** Why time passed with nothing to see: the causes of package recording. */
export type Cause = 'model' | 'tool' | 'human' | 'rate_limit' | 'back_off' | 'queue';

/** Remembers of one run what it could be waiting for. */
export class Waiting {
  asked = new Set<string>();
  private paused = false;
  private limited = false; // the last failure was a rate limit
  private model = false;
  private tools = 0;

  person(): boolean {
    return this.asked.size > 0 || this.paused;
  }

  private under(): Cause {
    return this.model ? 'model' : this.tools > 0 ? 'tool' : this.person() ? 'human' : 'queue';
  }

  private toolEnded(): Cause {
    this.tools = Math.max(this.tools - 1, 0);
    return 'tool';
  }

  /** Says what the time before an event was spent on, and remembers the event. */
  apply(ev: Event): Cause {
    const b = ev.b;
    let cause: Cause;
    switch (ev.k) {
      case 'ModelCallStarted':
        cause = this.under();
        if ((b.attempt ?? 0) > 1 && !this.person()) cause = this.limited ? 'rate_limit' : 'back_off';
        this.model = true;
        this.limited = this.paused = false;
        this.asked.clear();
        return cause;
      case 'ModelReplied':
        this.model = false;
        return 'model';
      case 'ModelFailed':
        this.model = false;
        this.limited = b.status === 429 || b.status === 529 || (b.retry_after ?? 0) > 0;
        return 'model';
      case 'ToolStarted':
        cause = this.under();
        if ((b.attempt ?? 0) > 1 && this.tools === 0 && !this.person()) cause = 'back_off';
        this.tools++;
        return cause;
      case 'ChildStarted':
        cause = this.under();
        this.tools++;
        return cause;
      case 'ToolReturned':
      case 'ChildStopped':
        return this.toolEnded();
      case 'ToolFailed':
        if (b.class === 'unknown') this.asked.add(b.call); // until it is settled
        return this.toolEnded();
      case 'EffectChecked':
        if (b.happened !== 'unknown') this.asked.delete(b.call);
        return 'tool';
      case 'ContractChecked':
        return 'tool';
      case 'ApprovalAsked':
        cause = this.under();
        this.asked.add(b.call);
        return cause;
      case 'ApprovalDecided':
      case 'EffectResolved':
        this.asked.delete(b.call);
        return 'human';
      case 'LimitReached':
        cause = this.under();
        this.paused = true; // the next model call shows that it was not
        return cause;
      case 'LimitsExtended':
        this.paused = false;
        return 'human';
    }
    return this.under();
  }
}
