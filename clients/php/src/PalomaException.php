<?php

declare(strict_types=1);

namespace Paloma;

/** A problem response (RFC 9457): its status, its code and its whole body. */
final class PalomaException extends \RuntimeException
{
    /** @var string the gateway's code of the error, such as `quota_exceeded`; also as `getCode()` */
    public $code;

    /** @param array<string, mixed> $problem */
    public function __construct(public readonly int $status, public readonly array $problem)
    {
        $text = static fn (string $name): ?string => is_string($problem[$name] ?? null) ? $problem[$name] : null;
        $this->code = $text('code') ?? 'unknown';
        parent::__construct("{$status} {$this->code}: " . ($text('detail') ?? $text('title') ?? 'no details'));
    }
}
