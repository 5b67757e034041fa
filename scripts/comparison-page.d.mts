export interface ComparedReport {
  readonly rows: readonly {
    readonly suite: string;
    readonly id: string;
    readonly requirement: string;
    readonly level: string;
    readonly profile: string;
    readonly status: string;
    readonly reason?: string;
  }[];
  readonly ok: boolean;
}

export declare function comparisonPage(sides: readonly (readonly [name: string, report: ComparedReport])[]): string;
