<?php

declare(strict_types=1);

namespace Paloma;

/** Events after the cursor are no longer kept. Read again what you need by other ways, then continue without a cursor. */
final class EventGapException extends \RuntimeException
{
    public function __construct(public readonly ?string $cursor)
    {
        parent::__construct("events after {$cursor} are no longer kept");
    }
}
